//! Where a server is that is not on this machine's stdio, and what every request to it carries.

use http::{HeaderMap, HeaderName, HeaderValue};
use whimbrel_models::http::Url;
use whimbrel_wire::options::RemoteServer;

use crate::mcp::fault::Fault;

/// The address and the headers of a server.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
}

impl Address {
    /// Reads an entry.
    pub(super) fn of(server: &RemoteServer) -> Result<Self, Fault> {
        let url = Url::parse(&server.url).map_err(|error| Fault::Hopeless(format!("`url`: {error}.")))?;
        let agent = HeaderValue::from_static(concat!("whimbrel/", env!("CARGO_PKG_VERSION")));
        let mut headers = HeaderMap::from_iter([(http::header::USER_AGENT, agent)]);
        for (name, value) in &server.headers {
            let (Ok(header), Ok(mut value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value))
            else {
                return Err(Fault::Hopeless(format!("`headers`: {name:?} cannot be sent.")));
            };
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(Self { url, headers })
    }
}
