// SPDX-License-Identifier: MPL-2.0
//! Everything that a peer sends to the studio, at the border where it is read: heads of HTTP requests, messages of
//! viewers with values for properties, how many come; and headers of films. No panic; who is let in has shown what is
//! needed, by rules that are written here again; values that are taken are in range, and the element takes them.
#![no_main]
#![allow(dead_code)] // Of the studio's files a part is reached from here.

#[path = "../../studio/src/http/guard.rs"]
mod guard;
#[path = "../../studio/src/orientation.rs"]
mod orientation;
#[path = "../../studio/src/properties.rs"]
mod properties;
#[path = "../../studio/src/request.rs"]
mod request;

use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use arbitrary::{Result, Unstructured};
use gst::prelude::*;
use guard::Guard;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use libfuzzer_sys::fuzz_target;
use request::{Allowance, BURST, Request};
use serde_json::{Value as Json, json};
use superpixel_fuzz::stream;

const TOKEN: &str = "00112233445566778899aabbccddeeff";
/// Parts of which headers and addresses are made.
const PARTS: [&str; 34] = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    "::1",
    "10.0.0.1",
    "studio.test",
    "evil.example",
    "http://",
    "https://",
    ":",
    ":80",
    ":8470",
    "@",
    "/",
    "?",
    "&",
    "#",
    ".",
    "[",
    "]",
    " ",
    "token=",
    TOKEN,
    "token=0",
    "null",
    "same-origin",
    "same-site",
    "cross-site",
    "none",
    "navigate",
    "document",
    "LOCALHOST",
    "\\",
    "%00",
];
const NAMES: [&str; 7] =
    ["host", "origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "cookie", "x-forwarded-host"];

struct Model {
    element: gst::Element,
    described: Vec<properties::Described>,
}

static MODEL: LazyLock<Model> = LazyLock::new(|| {
    let element = gst::ElementFactory::make("superpixel").build().expect("the element");
    properties::hold(&element);
    let described = properties::describe(&element);
    Model { element, described }
});

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    let mut text = String::new();
    for _ in 0..u.int_in_range(0..=4)? {
        if u.ratio(1, 8)? {
            text.push_str(u.arbitrary()?);
        } else {
            text.push_str(u.choose(&PARTS)?);
        }
    }
    Ok(text)
}

/// The only value of a header.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all: Vec<_> = headers.get_all(name).iter().collect();
    <[_; 1]>::try_from(all).ok()?[0].to_str().ok()
}

/// Returns true if a host name leads to this machine, by the rules of `http`.
fn leads_here(host: &str, listen: IpAddr) -> bool {
    let Ok(uri) = format!("http://{host}/").parse::<Uri>() else { return false };
    let name = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address == listen || listen.is_unspecified(),
        Err(_) => ["localhost", "studio.test"].contains(&name.as_str()),
    }
}

fn ask(u: &mut Unstructured<'_>, headers: &HeaderMap, uri: &Uri) -> Result<()> {
    let listen = IpAddr::from(*u.choose(&[[127, 0, 0, 1], [10, 0, 0, 1], [0, 0, 0, 0]])?);
    let token = u.arbitrary::<bool>()?.then(|| TOKEN.to_owned());
    let guard = Guard::with_token(SocketAddr::new(listen, 8470), vec!["studio.test:1".into()], token.clone());
    let host = only(headers, "host");
    if guard.check_site(headers, uri).is_ok() {
        assert!(host.is_some_and(|host| leads_here(host, listen)), "{host:?} was taken for this machine");
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let opened = uri.path() == "/" && only(headers, "sec-fetch-dest") == Some("document");
        assert!(opened || matches!(site, None | Some(b"same-origin" | b"none")), "from {site:?}");
    }
    if guard.check_caller(headers, uri).is_ok() {
        if let Some(origin) = headers.get("origin") {
            let own = format!("http://{}", host.expect("a host"));
            assert!(origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()), "{origin:?} at {own}");
        }
        let query = uri.query().unwrap_or_default();
        assert!(
            token.is_none_or(|token| query.contains(&format!("token={token}"))),
            "without the token: {query}"
        );
    }
    Ok(())
}

/// A head made of headers that are well formed.
fn drawn_head(u: &mut Unstructured<'_>) -> Result<()> {
    let mut headers = HeaderMap::new();
    for _ in 0..u.int_in_range(0..=5)? {
        let name = HeaderName::from_static(u.choose(&NAMES)?);
        if let Ok(value) = HeaderValue::from_str(&text(u)?) {
            headers.append(name, value);
        }
    }
    let Ok(uri) = format!("/{}", text(u)?).parse() else { return Ok(()) };
    ask(u, &headers, &uri)
}

/// A head as it comes, read by the parser that the server has.
fn raw_head(u: &mut Unstructured<'_>) -> Result<()> {
    let mut head = format!("GET /{} HTTP/1.1\r\n", text(u)?).into_bytes();
    while !u.is_empty() {
        head.extend(u.choose(&NAMES)?.as_bytes());
        head.extend(b": ");
        head.extend(text(u)?.as_bytes());
        head.extend(*u.choose(&[b"\r\n".as_slice(), b"\n", b"\r\n ", b"\0", b": "])?);
    }
    head.extend(b"\r\n\r\n");
    let mut parsed = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut parsed);
    if !request.parse(&head).is_ok_and(|status| status.is_complete()) {
        return Ok(());
    }
    let mut headers = HeaderMap::new();
    for header in request.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(header.value)) {
            headers.append(name, value);
        }
    }
    let Ok(uri) = request.path.unwrap_or("/").parse() else { return Ok(()) };
    ask(u, &headers, &uri)
}

/// Sets what a viewer sends, and looks at what the element has then.
fn set(name: &str, value: &Json) {
    let Model { element, described } = &*MODEL;
    let known = described.iter().find(|property| property.name == name);
    let Ok(property) = properties::check_json(element, name, value) else {
        assert!(known.is_none_or(|property| property.default != *value), "{name}: its default is refused");
        return;
    };
    let known = known.expect("a property that viewers may set");
    let in_range = |number: f64, min: f64, max: f64| (min..=max).contains(&number);
    match &known.kind {
        properties::Kind::Integer { min, max } => {
            assert!(property.value.as_i64().is_some_and(|number| (*min..=*max).contains(&number)));
        }
        properties::Kind::Float { min, max } => {
            let number = property.value.as_f64().expect("a number");
            assert!(in_range(number, f64::from(*min) - 1e-6, f64::from(*max) + 1e-6), "{name}: {number}");
        }
        properties::Kind::Boolean => assert!(property.value.is_boolean()),
        properties::Kind::Enum { values } => {
            assert!(values.iter().any(|choice| property.value == choice.nick.as_str()));
        }
    }
    // Equal values are equal, and the element takes them as they are.
    let again = properties::check_json(element, name, &property.value).expect("the value as it was taken");
    assert_eq!(again, property);
    property.apply(element);
    assert_eq!(properties::to_json(&element.property_value(name)), Some(property.value), "{name}");
}

fn message(text: &str) {
    match Request::read(text) {
        Ok(Request::Set { name, value, .. }) => set(&name, &value),
        Ok(Request::Apply { values, .. }) => values.iter().for_each(|(name, value)| set(name, value)),
        Ok(_) => assert!(text.len() <= request::LONGEST),
        Err(words) => assert!(!words.is_empty()),
    }
}

/// A request for a property, with a value of any type.
fn drawn_message(u: &mut Unstructured<'_>) -> Result<()> {
    let described = &MODEL.described;
    let property = &described[u.choose_index(described.len())?];
    let name = match u.int_in_range(0..=9)? {
        0 => *u.choose(&["cuda-device-id", "labels", "overlay", "name", "qos", "stats", "parent", ""])?,
        _ => &property.name,
    };
    let value = match u.int_in_range(0..=7)? {
        0 => json!(u.arbitrary::<i64>()?),
        1 => json!(u.arbitrary::<u64>()?),
        2 => json!(u.arbitrary::<f64>()?),
        3 => json!(u.arbitrary::<bool>()?),
        4 => json!(u.arbitrary::<&str>()?),
        5 => property.default.clone(),
        6 => match &property.kind {
            properties::Kind::Integer { min, max } => json!(u.int_in_range(min - 1..=max + 1)?),
            properties::Kind::Enum { values } => json!(values[u.choose_index(values.len())?].nick),
            _ => json!(u.int_in_range(-100..=100)?),
        },
        _ => json!([null, {}]),
    };
    let side = *u.choose(&["a", "b", "c"])?;
    message(&json!({ "do": "set", "side": side, "name": name, "value": value }).to_string());
    message(&json!({ "do": "apply", "side": side, "values": { name: value } }).to_string());
    Ok(())
}

/// Bytes as they come, or a request with a part that is exchanged.
fn raw_message(u: &mut Unstructured<'_>) -> Result<()> {
    let known = [
        r#"{"do":"seen","number":1}"#,
        r#"{"do":"set","side":"a","name":"threads","value":1}"#,
        r#"{"do":"speed","factor":1}"#,
        r#"{"do":"export","side":"b","overlay":"labels"}"#,
        r#"{"do":"step"}"#,
        r#"{"do":"mark","object":1,"time":0.04,"place":{"box":[1,2,3,4]}}"#,
        r#"{"do":"mark","time":0,"place":{"outside":[1,2]}}"#,
        r#"{"do":"forget","object":1}"#,
    ];
    let mut bytes = u.choose(&known)?.as_bytes().to_vec();
    let start = u.int_in_range(0..=bytes.len())?;
    let end = u.int_in_range(start..=bytes.len())?;
    let rest: Vec<u8> = u.arbitrary()?;
    bytes.splice(start..end, rest);
    message(&String::from_utf8_lossy(&bytes));
    Ok(())
}

/// Messages at drawn times: never more than the burst and what is earned since.
fn rate(u: &mut Unstructured<'_>) -> Result<()> {
    let start = Instant::now();
    let (mut allowance, mut now, mut taken) = (Allowance::new(start), start, 0u32);
    while !u.is_empty() {
        now += Duration::from_millis(u.int_in_range(0..=50)?);
        for _ in 0..u.int_in_range(1..=60)? {
            taken += u32::from(allowance.take(now));
        }
        let earned = 100.0 * (now - start).as_secs_f64();
        assert!(f64::from(taken) <= BURST + earned + 1.0, "{taken} after {:?}", now - start);
    }
    Ok(())
}

/// Boxes of a film, whose sizes lie.
fn film(u: &mut Unstructured<'_>) -> Result<()> {
    let mut content = Vec::new();
    let names = [b"moov", b"trak", b"mdia", b"hdlr", b"tkhd", b"vide", b"free"];
    while !u.is_empty() {
        match u.int_in_range(0..=3)? {
            0 => content.extend(u.arbitrary::<u32>()?.to_be_bytes()),
            1 => content.extend(u.int_in_range::<u32>(0..=120)?.to_be_bytes()),
            2 => content.extend(*u.choose(&names)?),
            _ => content.resize(content.len() + u.int_in_range(0..=40)?, u.arbitrary()?),
        }
    }
    let direction = orientation::direction_of(std::io::Cursor::new(content));
    assert!(["auto", "ur-ll"].contains(&direction));
    Ok(())
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=5)? {
        0 => drawn_head(u),
        1 => raw_head(u),
        2 => drawn_message(u),
        3 => raw_message(u),
        4 => rate(u),
        _ => film(u),
    }
}

fuzz_target!(
    init: stream::init(),
    |data: &[u8]| {
        // An input that is too short has nothing to say.
        let _ = run(&mut Unstructured::new(data));
    }
);
