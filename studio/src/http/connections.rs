// SPDX-License-Identifier: MPL-2.0
//! Connections that are open: how many there may be, which one goes when there is no room, and who reads too slowly.

use std::collections::BTreeMap;
use std::io::{IoSlice, Result};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// More are not open at a time; well below the 1024 files that a process usually may open.
pub const MOST_CONNECTIONS: usize = 128;
/// How often a peer is looked at that does not take what it asked for.
pub const PACE: Duration = Duration::from_secs(15);
/// Bytes that such a peer has to take in that time: 32 KiB a second.
pub const LEAST: u64 = 32 * 1024 * PACE.as_secs();

/// How much a connection is worth keeping, from the one that goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// No request of it was let in.
    Unknown,
    /// A request was let in.
    Known,
    /// A viewer or a download: never closed for others.
    Held,
}

struct Open {
    peer: IpAddr,
    standing: Standing,
    evicted: Arc<Notify>,
}

/// All connections, oldest first.
#[derive(Default)]
pub struct Connections(Mutex<Table>);

#[derive(Default)]
struct Table {
    next: u64,
    open: BTreeMap<u64, Open>,
}

impl Connections {
    /// A place for a new connection. Without room the least known, oldest connection of the peer that has most of such
    /// gives up its own; `None` where all are held.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Admission> {
        let mut table = self.0.lock().unwrap();
        if table.open.len() >= MOST_CONNECTIONS {
            let victim = table.victim()?;
            table.open.remove(&victim)?.evicted.notify_one();
        }
        let (id, evicted) = (table.next, Arc::new(Notify::new()));
        table.next += 1;
        table.open.insert(id, Open { peer, standing: Standing::Unknown, evicted: evicted.clone() });
        let (written, blocked) = (AtomicU64::new(0), AtomicBool::new(false));
        Some(Admission { connections: self.clone(), id, evicted, written, blocked })
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap().open.len()
    }
}

impl Table {
    fn victim(&self) -> Option<u64> {
        let least = self.open.values().map(|open| open.standing).min().filter(|s| *s < Standing::Held)?;
        let candidates = || self.open.iter().filter(|(_, open)| open.standing == least);
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        candidates().for_each(|(_, open)| *counts.entry(open.peer).or_default() += 1);
        let most = counts.values().max()?;
        candidates().find(|(_, open)| counts.get(&open.peer) == Some(most)).map(|(id, _)| *id)
    }
}

/// A connection's place, free again when this is dropped.
pub struct Admission {
    connections: Arc<Connections>,
    id: u64,
    evicted: Arc<Notify>,
    written: AtomicU64,
    blocked: AtomicBool,
}

impl Admission {
    /// A request of this connection was let in.
    pub fn is_known(&self) {
        self.raise(Standing::Known);
    }

    /// Keeps the connection for as long as it likes; `false` where it had to go already.
    pub fn hold(&self) -> bool {
        self.raise(Standing::Held)
    }

    /// A download has ended: the connection is as any other again.
    pub fn release(&self) {
        if let Some(open) = self.connections.0.lock().unwrap().open.get_mut(&self.id) {
            open.standing = Standing::Known;
        }
    }

    fn raise(&self, standing: Standing) -> bool {
        let mut table = self.connections.0.lock().unwrap();
        let Some(open) = table.open.get_mut(&self.id) else { return false };
        open.standing = open.standing.max(standing);
        true
    }

    /// Ends when the place was given to another connection.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Returns true if the peer took less than [`LEAST`] since the last call, although more was there for it.
    pub fn is_too_slow(&self) -> bool {
        self.written.swap(0, Ordering::Relaxed) < LEAST && self.blocked.load(Ordering::Relaxed)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.connections.0.lock().unwrap().open.remove(&self.id);
    }
}

/// A stream that counts for its place what the peer takes, and keeps the place for as long as it is open.
pub struct Counted {
    stream: TcpStream,
    admission: Arc<Admission>,
}

impl Counted {
    /// Counts for `place`.
    pub fn new(stream: TcpStream, admission: Arc<Admission>) -> Self {
        Self { stream, admission }
    }

    fn count(&self, taken: Poll<Result<usize>>) -> Poll<Result<usize>> {
        self.admission.blocked.store(taken.is_pending(), Ordering::Relaxed);
        let taken = ready!(taken)?;
        self.admission.written.fetch_add(taken as u64, Ordering::Relaxed);
        Poll::Ready(Ok(taken))
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        let taken = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.count(taken)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let taken = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.count(taken)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> IpAddr {
        [127, 0, 0, last].into()
    }

    #[test]
    fn the_greediest_peers_oldest_unknown_connection_goes_first() {
        let connections = Arc::new(Connections::default());
        let other = connections.admit(peer(2)).unwrap();
        let viewer = connections.admit(peer(1)).unwrap();
        let known = connections.admit(peer(1)).unwrap();
        assert!(viewer.hold());
        known.is_known();
        let mut many: Vec<_> = (3..MOST_CONNECTIONS).map(|_| connections.admit(peer(1)).unwrap()).collect();
        assert_eq!(connections.count(), MOST_CONNECTIONS);
        // Many more come: the number stays, and those go that nobody knows.
        for _ in 0..1000 {
            many.push(connections.admit(peer(1)).unwrap());
        }
        assert_eq!(connections.count(), MOST_CONNECTIONS);
        assert!(!many[0].hold() && many[1000].hold());
        assert!(other.hold() && viewer.hold() && known.hold(), "one that was there before had to go");
    }

    #[test]
    fn known_connections_go_after_unknown_ones_and_held_ones_never() {
        let connections = Arc::new(Connections::default());
        let all: Vec<_> = (0..MOST_CONNECTIONS).map(|_| connections.admit(peer(1)).unwrap()).collect();
        all.iter().for_each(Admission::is_known);
        let new = connections.admit(peer(1)).expect("the place of the oldest");
        assert!(!all[0].hold() && all[1].hold());
        drop(new);
        assert_eq!(connections.count(), MOST_CONNECTIONS - 1);
        let last = connections.admit(peer(1)).unwrap();
        assert!(all[2..].iter().all(Admission::hold) && last.hold());
        assert!(connections.admit(peer(2)).is_none(), "a place that somebody holds was given away");
        last.release();
        assert!(connections.admit(peer(2)).is_some());
    }
}
