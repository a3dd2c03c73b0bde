// SPDX-License-Identifier: MPL-2.0
//! Who is let in, and what of a request is refused.

mod common;

use common::{Viewer, host, open, studio};
use futures_util::SinkExt;
use serde_json::json;
use superpixel_studio::source::Source;
use superpixel_studio::start;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

/// The status of a request for a path, sent to `to` with the given Host and Origin.
async fn status(to: &str, path: &str, host: &str, origin: Option<&str>) -> u16 {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let origin = origin.map_or(String::new(), |origin| format!("origin: {origin}\r\n"));
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{origin}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn loopback_only_unless_told_otherwise() {
    let running = studio(&[]).await;
    let address = running.address();
    assert!(address.starts_with("http://127.0.0.1:") && !address.contains("token"), "{address}");
    // Not at other addresses of this machine, of which each has one on loopback, too.
    let port = host(&address).split_once(':').unwrap().1.to_owned();
    assert!(TcpStream::connect(format!("127.0.0.2:{port}")).await.is_err());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn host_and_origin_are_those_of_the_studio() {
    let running = studio(&[]).await;
    let address = running.address();
    let own = host(&address);
    let port = own.split_once(':').unwrap().1;
    let local = format!("localhost:{port}");
    for (name, wanted) in
        [(own.as_str(), 200), (&local, 200), ("evil.example", 421), (&format!("evil.example:{port}"), 421)]
    {
        assert_eq!(status(&own, "/", name, None).await, wanted, "Host {name}");
        assert_eq!(status(&own, "/app.js", name, None).await, wanted, "Host {name}");
    }
    assert_eq!(status(&own, "/", "127.0.0.1:1", None).await, 421, "another port");
    assert_eq!(
        status(&own, "/copy/python?side=a&overlay=none", &own, Some("http://evil.example")).await,
        403
    );
    let origin = format!("http://{own}");
    for (headers, wanted) in [
        (vec![("origin", origin.as_str())], Ok(())),
        (vec![], Err(403)),
        (vec![("origin", "http://evil.example")], Err(403)),
        (vec![("origin", "null")], Err(403)),
        (vec![("origin", origin.as_str()), ("host", "evil.example")], Err(421)),
    ] {
        assert_eq!(open(&address, &headers).await.map(drop), wanted, "{headers:?}");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_need_the_token() {
    // Every address of this machine; nobody but this test asks.
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let running = start(Source::File(common::clip()), &[], listener, vec!["studio.test".into()]).unwrap();
    let address = running.address();
    let token = address.split_once("?token=").expect("a token in the address").1.to_owned();
    assert_eq!(token.len(), 32);
    let own = format!("127.0.0.1:{port}");
    let page = |token: &str| format!("/?token={token}");
    let wrong: String = token.chars().rev().collect();
    for (path, host, wanted) in [
        (page(&token), own.clone(), 200),
        (page(&token), format!("studio.test:{port}"), 200),
        (page(&token), format!("other.test:{port}"), 421),
        (page(&wrong), own.clone(), 401),
        (page(""), own.clone(), 401),
        ("/".to_owned(), own.clone(), 401),
        ("/copy/python?side=a&overlay=none".to_owned(), own.clone(), 401),
        ("/export/1".to_owned(), own.clone(), 401),
    ] {
        assert_eq!(status(&own, &path, &host, None).await, wanted, "{path} of {host}");
    }
    let origin = format!("http://{own}");
    let at = |query: &str| format!("http://{own}/{query}");
    assert_eq!(open(&at(""), &[("origin", &origin)]).await.map(drop), Err(401));
    assert_eq!(open(&at("?token=0"), &[("origin", &origin)]).await.map(drop), Err(401));
    assert!(open(&at(&format!("?token={token}")), &[("origin", &origin)]).await.is_ok());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_properties_of_the_element_and_in_range() {
    let running = studio(&["superpixel-size=64"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    viewer.until("a state", |state| state.is_object()).await;
    let before = viewer.state["values"].clone();
    let set = |name: &str, value: serde_json::Value| json!({ "do": "set", "side": "a", "name": name, "value": value });
    for request in [
        set("location", json!("/etc/passwd")),
        set("uri", json!("file:///etc/passwd")),
        // Of its base classes, and those that the studio sets itself.
        set("name", json!("x")),
        set("qos", json!(true)),
        set("overlay", json!("labels")),
        set("labels", json!(false)),
        set("stats", json!(0)),
        set("superpixel-size", json!(3)),
        set("superpixel-size", json!(4.5)),
        set("superpixel-size", json!("24")),
        set("superpixel-size", json!(1e300)),
        set("compactness", json!(0)),
        set("compactness", json!(null)),
        set("algo", json!("slic ! filesink location=/tmp/x")),
        set("algo", json!(1)),
        json!({ "do": "apply", "side": "a", "values": { "location": "/tmp/x" } }),
        json!({ "do": "speed", "factor": 1e9 }),
        json!({ "do": "speed", "factor": 0 }),
        json!({ "do": "seek", "to": -1 }),
    ] {
        viewer.state["problem"] = json!(null);
        viewer.send(request.clone()).await;
        viewer.until(&request.to_string(), |state| state["problem"].is_object()).await;
        assert_eq!(viewer.state["values"], before, "{request}");
        // Said once and not again: the next problem has to differ from it.
        viewer.send(json!({ "do": "restart" })).await;
        viewer.until("a new start", |state| state["problem"].is_null()).await;
    }
    for text in [
        "{",
        "[]",
        r#"{"do":"open","path":"/etc/passwd"}"#,
        r#"{"do":"step","path":"x"}"#,
        r#"{"do":"launch","text":"x"}"#,
    ] {
        viewer.refused = None;
        viewer.socket.send(Message::text(text)).await.unwrap();
        while viewer.refused.is_none() {
            viewer.receive().await.expect("a connection");
        }
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_and_rates_are_bounded() {
    let running = studio(&["superpixel-size=64"]).await;
    let closes = async |message: Message, times: usize| {
        let mut viewer = Viewer::new(&running.address()).await;
        for _ in 0..times {
            if viewer.socket.send(message.clone()).await.is_err() {
                return;
            }
        }
        while viewer.receive().await.is_some() {}
    };
    closes(Message::text("x".repeat(10_000)), 1).await;
    closes(Message::binary(vec![0; 10]), 1).await;
    closes(Message::text(r#"{"do":"seen","number":0}"#), 1000).await;
    // Others go on.
    let mut viewer = Viewer::new(&running.address()).await;
    viewer.frame().await;
    // As many viewers as there are places.
    let mut viewers = Vec::new();
    for _ in 1..superpixel_studio::hub::MOST_VIEWERS {
        viewers.push(Viewer::new(&running.address()).await);
        viewers.last_mut().unwrap().receive().await.expect("a place");
    }
    let mut late = Viewer::new(&running.address()).await;
    assert!(late.receive().await.is_none(), "one more than there are places");
    running.stop().await;
}
