// SPDX-License-Identifier: MPL-2.0
//! Access control: the host names that the server answers to, only its own pages as origin, and the token if others can
//! reach it.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, StatusCode, Uri, header};

/// Name by which browsers say how the asking page is related to the server.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Name by which browsers say whether a page is opened or something is fetched for one.
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// Name by which browsers say what the answer becomes: a whole page, a frame of one, a picture.
const DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Conditions that a request has to fulfill.
#[derive(Debug, Clone)]
pub struct Guard {
    listen: IpAddr,
    port: u16,
    names: Vec<String>,
    token: Option<String>,
}

/// Why a request is refused, with words for the person who reads them.
pub type Refusal = (StatusCode, &'static str);

const OTHER_SITE: Refusal = (StatusCode::FORBIDDEN, "Pages of other sites may not use the studio.\n");
const OTHER_HOST: Refusal = (
    StatusCode::MISDIRECTED_REQUEST,
    "This is not the address of the studio. Open the one that it printed; --host allows another name.\n",
);
const NO_TOKEN: Refusal = (
    StatusCode::UNAUTHORIZED,
    "The token is missing or old. Open the whole address that the studio printed when it started.\n",
);

impl Guard {
    /// For a server at `address`. Off loopback there is a token; `names` are further names of this machine.
    ///
    /// # Errors
    ///
    /// A system without random numbers.
    pub fn new(address: SocketAddr, names: Vec<String>) -> Result<Self, getrandom::Error> {
        let token = (!address.ip().is_loopback()).then(random_token).transpose()?;
        Ok(Self::with_token(address, names, token))
    }

    /// Makes a guard with a given token.
    pub fn with_token(address: SocketAddr, names: Vec<String>, token: Option<String>) -> Self {
        let names = names.iter().map(|name| name_of(name).unwrap_or(name).to_owned()).collect();
        Self { listen: address.ip(), port: address.port(), names, token }
    }

    /// The address that a person opens.
    pub fn address(&self, host: &str) -> String {
        let query = self.token.as_ref().map_or_else(String::new, |token| format!("?token={token}"));
        format!("http://{host}:{}/{query}", self.port)
    }

    /// Any request: at a name of this machine, and from no page of another site.
    ///
    /// # Errors
    ///
    /// A host that is not this one (a page of another site reaches a local server by a name of its own), or a page of
    /// another site. A link of another site may open the page at `/`, which has nothing of what plays.
    pub fn check_site(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        let host = text(headers, header::HOST).ok_or(OTHER_HOST)?;
        if !self.is_own(host) {
            return Err(OTHER_HOST);
        }
        let Some(site) = headers.get(SITE) else { return Ok(()) };
        let opened = uri.path() == "/"
            && text(headers, MODE) == Some("navigate")
            && text(headers, DEST) == Some("document");
        if opened || [b"same-origin".as_slice(), b"none"].contains(&site.as_bytes()) {
            return Ok(());
        }
        Err(OTHER_SITE)
    }

    /// A request that reads or changes what plays: of a page of this server, with the token where there is one.
    ///
    /// # Errors
    ///
    /// Which of both is missing.
    pub fn check_caller(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        if let Some(origin) = headers.get(header::ORIGIN) {
            let host = text(headers, header::HOST).ok_or(OTHER_HOST)?;
            // The port of both is the one of the browser's side, which a forwarded connection changes.
            let own = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            if !own.is_some_and(|own| own.eq_ignore_ascii_case(host)) {
                return Err(OTHER_SITE);
            }
        }
        let Some(token) = &self.token else { return Ok(()) };
        let mut given = uri.query().unwrap_or_default().split('&').filter_map(|p| p.strip_prefix("token="));
        given.next().is_some_and(|given| equal(given, token)).then_some(()).ok_or(NO_TOKEN)
    }

    /// Returns true if `HOST[:PORT]` names this machine: by an address that the server listens on, or by an allowed
    /// name. The port is not checked: it would keep no other site out, and a forwarded connection has another one.
    fn is_own(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else { return false };
        match name.parse::<IpAddr>() {
            // A page cannot make a browser take a number for another machine's.
            Ok(address) => address.is_loopback() || address == self.listen || self.listen.is_unspecified(),
            Err(_) => {
                let known = |known: &String| known.eq_ignore_ascii_case(name);
                name.eq_ignore_ascii_case("localhost") || self.names.iter().any(known)
            }
        }
    }
}

/// The name in `HOST[:PORT]`, without the brackets of an IPv6 address.
fn name_of(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(bracketed) => {
            let (name, rest) = bracketed.split_once(']')?;
            name.parse::<std::net::Ipv6Addr>().ok()?;
            (name, rest)
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
    (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// A header that is there once.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
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
