// SPDX-License-Identifier: MPL-2.0
//! A studio and a viewer of it, as the page is one.
#![allow(dead_code)] // Each test uses a part.

pub mod program;

use std::path::PathBuf;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use gst::prelude::*;
use serde_json::{Value as Json, json};
use superpixel_studio::encode::labels;
use superpixel_studio::source::Source;
use superpixel_studio::{Running, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Longer than anything takes on a machine with other work.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The bundled clip.
pub fn clip() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../media/bigbuckbunny.mp4")).canonicalize().unwrap()
}

/// A clip of two seconds, whose frames take little time, written into `folder`.
pub fn small_clip(folder: &std::path::Path) -> PathBuf {
    superpixel_studio::init().unwrap();
    let line = "videotestsrc pattern=ball num-buffers=50 ! video/x-raw,width=192,height=128,framerate=25/1 ! jpegenc \
                ! matroskamux ! filesink name=sink";
    let pipeline = gst::parse::launch(line).unwrap().downcast::<gst::Pipeline>().unwrap();
    let path = folder.join("small.mkv");
    pipeline.by_name("sink").unwrap().set_property("location", &path);
    pipeline.set_state(gst::State::Playing).unwrap();
    let end = [gst::MessageType::Eos, gst::MessageType::Error];
    let message = pipeline.bus().unwrap().timed_pop_filtered(gst::ClockTime::from_seconds(60), &end).unwrap();
    assert_eq!(message.type_(), gst::MessageType::Eos, "{message:?}");
    pipeline.set_state(gst::State::Null).unwrap();
    path
}

/// A studio at any port of loopback.
pub async fn studio_of(source: Source, properties: &[&str]) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let properties: Vec<_> = properties.iter().map(|p| (*p).to_owned()).collect();
    start(source, &properties, listener, Vec::new()).unwrap()
}

/// Starts the studio with the bundled clip.
pub async fn studio(properties: &[&str]) -> Running {
    studio_of(Source::File(clip()), properties).await
}

/// `host:port` of an address.
pub fn host(address: &str) -> String {
    address.trim_start_matches("http://").split('/').next().unwrap().to_owned()
}

/// Asks for a path; returns head and body.
pub async fn get(address: &str, path: &str) -> (String, Vec<u8>) {
    let mut stream = tokio::net::TcpStream::connect(host(address)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", host(address));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    (String::from_utf8(answer[..end].to_vec()).unwrap(), answer[end + 4..].to_vec())
}

/// Opens the socket with some headers; what the server says where it refuses.
pub async fn open(
    address: &str,
    headers: &[(&str, &str)],
) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, u16> {
    let query = address.split_once('?').map_or(String::new(), |(_, query)| format!("?{query}"));
    let mut request = format!("ws://{}/socket{query}", host(address)).into_client_request().unwrap();
    for (name, value) in headers {
        let name = tokio_tungstenite::tungstenite::http::HeaderName::from_bytes(name.as_bytes()).unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    match connect_async(request).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

/// One frame as a viewer reads it.
pub struct Frame {
    pub head: Json,
    pub message: Vec<u8>,
}

impl Frame {
    pub fn read(message: Vec<u8>) -> Self {
        let length = u32::from_le_bytes(message[..4].try_into().unwrap()) as usize;
        Self { head: serde_json::from_slice(&message[4..4 + length]).unwrap(), message }
    }

    pub fn number(&self) -> u64 {
        self.head["number"].as_u64().unwrap()
    }

    pub fn time(&self) -> f64 {
        self.head["time"].as_f64().unwrap()
    }

    pub fn sides(&self) -> &[Json] {
        self.head["sides"].as_array().unwrap()
    }

    pub fn regions(&self, side: usize) -> u64 {
        self.sides()[side]["regions"].as_u64().unwrap()
    }

    /// Bytes of a section.
    pub fn section(&self, place: &Json) -> &[u8] {
        let length = u32::from_le_bytes(self.message[..4].try_into().unwrap()) as usize;
        let (start, bytes) = (place[0].as_u64().unwrap() as usize, place[1].as_u64().unwrap() as usize);
        assert!(start.is_multiple_of(8) && (4 + length).is_multiple_of(8));
        &self.message[4 + length + start..][..bytes]
    }

    /// The drawing of a side as it was sent; none for viewers that do not look at it.
    pub fn drawn(&self, side: usize) -> Option<&[u8]> {
        self.sides()[side].get("abstraction").map(|place| self.section(place))
    }

    /// Returns true if the element of a side took time to draw.
    pub fn was_drawn(&self, side: usize) -> bool {
        self.sides()[side]["stages"].as_array().unwrap().iter().any(|stage| stage[0] == "overlay")
    }

    pub fn labels(&self, side: usize) -> Vec<u16> {
        let head = &self.sides()[side];
        let size = |name: &str| head[name].as_u64().unwrap() as usize;
        labels::decode(self.section(&head["labels"]), size("width"), size("height")).unwrap()
    }
}

/// A viewer.
pub struct Viewer {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub state: Json,
    pub refused: Option<String>,
    pub hello: Json,
}

impl Viewer {
    pub async fn new(address: &str) -> Self {
        let origin = format!("http://{}", host(address));
        let socket = open(address, &[("origin", &origin)]).await.unwrap();
        Self { socket, state: Json::Null, refused: None, hello: Json::Null }
    }

    /// Components of a field in all records of side a, read as the page reads them: by the layouts of the hello.
    pub fn column(&self, frame: &Frame, section: &str, field: &str) -> Vec<f64> {
        let layout = &self.hello["records"][section];
        let bytes = layout["bytes"].as_u64().unwrap() as usize;
        let of = |name: &str| layout["fields"][field][name].as_u64().unwrap() as usize;
        let (offset, count) = (of("offset"), of("count"));
        let kind = layout["fields"][field]["type"].as_str().unwrap();
        let width = kind[1..].parse::<usize>().unwrap() / 8;
        let number = |bytes: &[u8]| match kind {
            "u8" => bytes[0].into(),
            "u16" => u16::from_le_bytes(bytes.try_into().unwrap()).into(),
            "u32" => u32::from_le_bytes(bytes.try_into().unwrap()).into(),
            "f32" => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
            _ => panic!("{kind}"),
        };
        let records = frame.section(&frame.sides()[0][section]).chunks_exact(bytes);
        records.flat_map(|record| record[offset..][..count * width].chunks(width).map(number)).collect()
    }

    pub async fn send(&mut self, request: Json) {
        self.socket.send(Message::text(request.to_string())).await.unwrap();
    }

    /// The next message; texts are kept, a frame is returned. `None` when the server has closed.
    pub async fn receive(&mut self) -> Option<Option<Frame>> {
        let message = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("a message in time");
        match message? {
            Ok(Message::Text(text)) => {
                let mut text: Json = serde_json::from_str(&text).unwrap();
                if text.get("state").is_some() {
                    self.state = text["state"].take();
                } else if text.get("hello").is_some() {
                    self.hello = text["hello"].take();
                } else {
                    self.refused = text["refused"].as_str().map(str::to_owned);
                }
                Some(None)
            }
            Ok(Message::Binary(bytes)) => Some(Some(Frame::read(bytes.to_vec()))),
            Ok(Message::Close(_)) | Err(_) => None,
            Ok(_) => Some(None),
        }
    }

    /// The next frame, and says that it was seen.
    pub async fn frame(&mut self) -> Frame {
        loop {
            if let Some(frame) = self.receive().await.expect("a connection") {
                self.send(json!({ "do": "seen", "number": frame.number() })).await;
                return frame;
            }
        }
    }

    /// Reads on until the state is as wanted.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&Json) -> bool) {
        let end = tokio::time::Instant::now() + PATIENCE;
        while !holds(&self.state) {
            assert!(tokio::time::Instant::now() < end, "waited in vain for {what}: {}", self.state);
            if let Some(frame) = self.receive().await.expect("a connection") {
                self.send(json!({ "do": "seen", "number": frame.number() })).await;
            }
        }
    }

    /// Reads on until a frame is as wanted.
    pub async fn frame_until(&mut self, what: &str, holds: impl Fn(&Frame) -> bool) -> Frame {
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let frame = self.frame().await;
            if holds(&frame) {
                return frame;
            }
            assert!(tokio::time::Instant::now() < end, "waited in vain for {what}");
        }
    }

    /// Waits for a frame, at most for `time`.
    pub async fn frame_within(&mut self, time: Duration) -> Option<Frame> {
        tokio::time::timeout(time, self.frame()).await.ok()
    }
}
