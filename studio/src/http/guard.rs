// SPDX-License-Identifier: MPL-2.0
//! Who may ask: the names that the server answers to, pages of its own only, and the token where others reach it.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, StatusCode, Uri, header};

/// What a request has to show.
#[derive(Debug, Clone)]
pub struct Guard {
    port: u16,
    listen: IpAddr,
    names: Vec<String>,
    token: Option<String>,
}

/// Why a request is refused, with words for the person who reads them.
pub type Refusal = (StatusCode, &'static str);

impl Guard {
    /// For a server at `address`. Off loopback there is a token; `names` are further names of this machine.
    ///
    /// # Errors
    ///
    /// A system without random numbers.
    pub fn new(address: SocketAddr, names: Vec<String>) -> Result<Self, getrandom::Error> {
        let token = (!address.ip().is_loopback()).then(random_token).transpose()?;
        Ok(Self { port: address.port(), listen: address.ip(), names, token })
    }

    /// The address that a person opens.
    pub fn address(&self, host: &str) -> String {
        let query = self.token.as_ref().map_or_else(String::new, |token| format!("?token={token}"));
        format!("http://{host}:{}/{query}", self.port)
    }

    /// Any request.
    ///
    /// # Errors
    ///
    /// A host that is not this one: a page of another site reaches a local server by a name of its own.
    pub fn check_host(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let refusal = (
            StatusCode::MISDIRECTED_REQUEST,
            "This is not the address of the studio. Open the one that it printed; --host allows another name.\n",
        );
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).ok_or(refusal)?;
        self.is_own(host).then_some(()).ok_or(refusal)
    }

    /// A request that reads or changes what plays: of a page of this server, with the token where there is one.
    ///
    /// # Errors
    ///
    /// Which of both is missing.
    pub fn check_caller(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        if let Some(origin) = headers.get(header::ORIGIN) {
            let own = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            if !own.is_some_and(|host| self.is_own(host)) {
                return Err((StatusCode::FORBIDDEN, "Pages of other sites may not use the studio.\n"));
            }
        }
        let Some(token) = &self.token else { return Ok(()) };
        let mut given = uri.query().unwrap_or_default().split('&').filter_map(|p| p.strip_prefix("token="));
        if given.next().is_some_and(|given| equal(given, token)) {
            return Ok(());
        }
        Err((
            StatusCode::UNAUTHORIZED,
            "The token is missing or old. Open the whole address that the studio printed when it started.\n",
        ))
    }

    /// Whether `HOST[:PORT]` is this server: by address where it listens, or by a name that is allowed.
    fn is_own(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().unwrap_or(0)),
            _ => (host, 80),
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        if port != self.port {
            return false;
        }
        match name.parse::<IpAddr>() {
            // A page cannot make a browser take a number for another machine's.
            Ok(address) => address.is_loopback() || address == self.listen || self.listen.is_unspecified(),
            Err(_) => name == "localhost" || self.names.iter().any(|known| known.eq_ignore_ascii_case(name)),
        }
    }
}

fn random_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// In a time that says nothing about where both differ.
fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
