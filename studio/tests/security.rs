// SPDX-License-Identifier: MPL-2.0
//! Admission of clients, and refusal of parts of their requests.

mod common;

use common::{Viewer, host, open, studio};
use futures_util::SinkExt;
use serde_json::json;
use superpixel_studio::source::Source;
use superpixel_studio::start;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

/// The status of a request for a path, sent to `to` with the given Host and further headers.
async fn status_of(to: &str, path: &str, host: &str, headers: &str) -> u16 {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{headers}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap().parse().unwrap()
}

/// Like above, with an Origin.
async fn status(to: &str, path: &str, host: &str, origin: Option<&str>) -> u16 {
    status_of(to, path, host, &origin.map_or(String::new(), |origin| format!("origin: {origin}\r\n"))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn loopback_only_unless_told_otherwise() {
    let running = studio(&[]).await;
    let address = running.address();
    assert!(address.starts_with("http://127.0.0.1:") && !address.contains("token"), "{address}");
    // Not at other addresses of this machine, of which each has one on loopback, too.
    let port = host(&address).split_once(':').unwrap().1.to_owned();
    assert!(TcpStream::connect(format!("127.0.0.2:{port}")).await.is_err());
    assert!(running.stop().await, "something hangs");
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
    // A forwarded connection has another port at the browser's side, or none.
    for name in ["127.0.0.1:1", "localhost:9000", "localhost", "[::1]:8080"] {
        assert_eq!(status(&own, "/", name, None).await, 200, "{name}");
        let copy = "/copy/python?side=a&overlay=none";
        assert_eq!(status(&own, copy, name, Some(&format!("http://{name}"))).await, 200, "{name}");
        assert_eq!(status(&own, copy, name, Some(&format!("http://{own}"))).await, 403, "{name}");
    }
    for name in
        ["", ":80", "localhost.evil.example", "localhost:x", "[::1", "[evil]:80", "127.0.0.1.evil.example"]
    {
        assert_eq!(status(&own, "/", name, None).await, 421, "{name}");
    }
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
        (vec![("origin", "http://localhost:9000"), ("host", "localhost:9000")], Ok(())),
        (vec![("origin", "http://localhost:9001"), ("host", "localhost:9000")], Err(403)),
        (vec![("origin", origin.as_str()), ("sec-fetch-site", "cross-site")], Err(403)),
        (vec![("origin", origin.as_str()), ("sec-fetch-site", "same-origin")], Ok(())),
    ] {
        assert_eq!(open(&address, &headers).await.map(drop), wanted, "{headers:?}");
    }
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_get_nothing() {
    let running = studio(&[]).await;
    let own = host(&running.address());
    let site = |site: &str| format!("sec-fetch-site: {site}\r\n");
    for path in ["/copy/gst-launch?side=a&overlay=none", "/app.js", "/export/1"] {
        let usual = if path == "/export/1" { 404 } else { 200 };
        for (from, wanted) in
            [("cross-site", 403), ("same-site", 403), ("same-origin", usual), ("none", usual)]
        {
            assert_eq!(status_of(&own, path, &own, &site(from)).await, wanted, "{path} from {from}");
        }
        let opened = site("cross-site") + "sec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n";
        assert_eq!(status_of(&own, path, &own, &opened).await, 403, "{path} opened");
    }
    // A link to the page may stand anywhere; a frame of the page may not.
    for (dest, wanted) in [("document", 200), ("iframe", 403)] {
        let headers = format!("{}sec-fetch-mode: navigate\r\nsec-fetch-dest: {dest}\r\n", site("cross-site"));
        assert_eq!(status_of(&own, "/", &own, &headers).await, wanted, "{dest}");
    }
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_of_a_source_is_shown_to_nobody() {
    // Port 1 is closed, and GStreamer's error message contains the address.
    let source = Source::parse("http://user:secret@127.0.0.1:1/cam".as_ref());
    let running = common::studio_of(source, &[]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    viewer.until("a problem", |state| state["problem"].is_object()).await;
    assert_eq!(viewer.state["source"], "http://127.0.0.1:1/cam");
    let mut texts = vec![viewer.state.to_string(), viewer.hello.to_string()];
    for kind in ["gst-launch", "python"] {
        let (head, body) =
            common::get(&running.address(), &format!("/copy/{kind}?side=a&overlay=none")).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        texts.push(String::from_utf8(body).unwrap());
    }
    viewer.send(json!({ "do": "export", "side": "a", "overlay": "labels", "kind": "video" })).await;
    viewer.until("its failure", |state| state["export"]["problem"].is_string()).await;
    texts.push(viewer.state.to_string());
    for text in texts {
        assert!(!text.contains("secret") && !text.contains("user"), "{text}");
    }
    assert!(running.stop().await, "something hangs");
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
    assert!(running.stop().await, "something hangs");
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
        set("threads", json!(1024)),
        // A NUL within a text, at which GLib would end the thread.
        set("algo\0", json!("slic")),
        set("algo", json!("slic\0")),
        json!({ "do": "apply", "side": "b", "values": { "algo\0": 1 } }),
        json!({ "do": "export", "side": "a", "overlay": "labels\0", "kind": "video" }),
        set("cuda-device-id", json!(0)),
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
    let (head, _) = common::get(&running.address(), "/copy/python?side=a&overlay=none%00").await;
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
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
    assert!(running.stop().await, "something hangs");
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
    closes(Message::Ping(Default::default()), 1000).await;
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
    // A refused viewer took no seat, so there is none to give back.
    assert_eq!(running.viewers(), superpixel_studio::hub::MOST_VIEWERS);
    let mut later = Viewer::new(&running.address()).await;
    assert!(later.receive().await.is_none(), "the place of one that had none");
    assert!(running.stop().await, "something hangs");
}
