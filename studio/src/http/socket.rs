// SPDX-License-Identifier: MPL-2.0
//! One viewer's connection: newest frames and states out, bounded requests in.

use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use serde_json::json;
use tokio::sync::watch;

use super::connections::Admission;
use super::{Studio, stopped};
use crate::encode;
use crate::hub::Seat;
use crate::request::{Allowance, Request};

/// Frames that a viewer has not yet drawn; the next one waits, and a newer one takes its place.
const MOST_UNSEEN: usize = 2;
/// A viewer that says nothing for so long is gone; every connection is asked in between.
const SILENCE: Duration = Duration::from_secs(20);
/// A viewer that does not take a message for so long is gone.
const STUCK: Duration = Duration::from_secs(10);

/// A viewer that does not take the last message for so long goes without it.
const FAREWELL: Duration = Duration::from_millis(300);

/// A viewer's side of the connection.
struct Viewer<'a> {
    seat: Seat<'a>,
    frames: watch::Receiver<Option<encode::Message>>,
    /// Frames that were sent and not yet drawn.
    unseen: usize,
    allowance: Allowance,
}

/// Serves a viewer until it goes, or until the studio stops.
pub async fn serve(mut socket: WebSocket, studio: &Studio, admission: &Admission) {
    let Some(seat) = studio.hub.seat().filter(|_| admission.hold()) else {
        refuse(&mut socket, close_code::AGAIN, "The studio has as many viewers as it takes.").await;
        return;
    };
    let allowance = Allowance::new(Instant::now());
    let mut viewer = Viewer { seat, frames: studio.hub.frames(), unseen: 0, allowance };
    let mut states = studio.hub.states();
    let mut stop = studio.stop.subscribe();
    if send(&mut socket, Message::text(studio.hello.as_str())).await.is_err() {
        return;
    }
    let mut heard = Instant::now();
    let mut ask = tokio::time::interval(SILENCE / 2);
    loop {
        let message = tokio::select! {
            // States first: they are small, and say what the frames mean.
            biased;
            () = stopped(&mut stop) => {
                refuse(&mut socket, close_code::AWAY, "The studio stops.").await;
                return;
            }
            received = socket.recv() => {
                let Some(Ok(received)) = received else { return };
                heard = Instant::now();
                match viewer.hear(received, studio) {
                    Ok(None) => continue,
                    Ok(Some(answer)) => answer,
                    Err(reason) => {
                        refuse(&mut socket, close_code::POLICY, reason).await;
                        return;
                    }
                }
            }
            changed = states.changed() => {
                if changed.is_err() { return }
                let Some(state) = states.borrow_and_update().clone() else { continue };
                Message::text(state)
            }
            changed = viewer.frames.changed(), if viewer.unseen < MOST_UNSEEN => {
                if changed.is_err() { return }
                let Some(frame) = viewer.frames.borrow_and_update().clone() else { continue };
                viewer.unseen += 1;
                Message::Binary(frame.bytes(viewer.seat.looks()))
            }
            _ = ask.tick() => {
                if heard.elapsed() > SILENCE { return }
                Message::Ping(Default::default())
            }
        };
        tokio::select! {
            () = stopped(&mut stop) => return,
            sent = send(&mut socket, message) => if sent.is_err() { return },
        }
    }
}

/// Sends, unless nobody takes it.
async fn send(socket: &mut WebSocket, message: Message) -> Result<(), ()> {
    tokio::time::timeout(STUCK, socket.send(message)).await.map_err(drop)?.map_err(drop)
}

async fn refuse(socket: &mut WebSocket, code: u16, reason: &'static str) {
    let last = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    // A viewer that is gone reads no reason.
    let _ = tokio::time::timeout(FAREWELL, socket.send(last)).await;
}

impl Viewer<'_> {
    /// Does what a message asks for; returns what is to be answered, or why the connection ends.
    fn hear(&mut self, message: Message, studio: &Studio) -> Result<Option<Message>, &'static str> {
        // Pings too: each is answered.
        if !self.allowance.take(Instant::now()) {
            return Err("Too many requests at once.");
        }
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) => return Err("Requests are text."),
            // Pings are answered by the socket itself.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) => return Ok(None),
        };
        let answer = |text: String| Ok(Some(Message::text(json!({ "refused": text }).to_string())));
        let request = match Request::read(&text) {
            Ok(Request::Seen { .. }) => {
                self.unseen = self.unseen.saturating_sub(1);
                return Ok(None);
            }
            Ok(request) => request,
            Err(words) => return answer(words),
        };
        if let Request::Look { abstraction } = request {
            self.look(abstraction);
        }
        if !studio.player.request(request) {
            return answer("The studio has more to do than it can; wait a moment.".into());
        }
        Ok(None)
    }

    /// Notes what the viewer looks at.
    fn look(&mut self, abstraction: bool) {
        let begins = abstraction && !self.seat.looks();
        self.seat.look(abstraction);
        // A paused picture that was drawn for another viewer does not come again by itself.
        let is_there = || self.frames.borrow().as_ref().is_some_and(encode::Message::is_drawn);
        if begins && is_there() {
            self.frames.mark_changed();
        }
    }
}
