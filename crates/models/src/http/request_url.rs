//! Parsed request URLs.

use std::fmt;

use ::http::{HeaderValue, Uri};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::error::{ModelError, ModelErrorKind};

/// A URL parsed and validated once, so that it can be requested often.
#[derive(Clone)]
pub struct RequestUrl {
    pub(super) uri: Uri,
    /// User and password from the URL as a header; not part of `uri`.
    pub(super) basic_auth: Option<HeaderValue>,
}

impl RequestUrl {
    /// Parses an `http://` or `https://` URL.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let url = Url::parse(text)
            .map_err(|error| invalid_address(format!("{:?} is not a valid URL: {error}.", redact(text))))?;
        Self::try_from(url)
    }

    /// The host as written in the URL.
    pub fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }
}

impl TryFrom<Url> for RequestUrl {
    type Error = ModelError;

    fn try_from(mut url: Url) -> Result<Self, ModelError> {
        if !matches!(url.scheme(), "http" | "https") {
            let message = format!(
                "A URL that begins with {}: is not supported; it must begin with http:// or https://.",
                url.scheme()
            );
            return Err(invalid_address(message));
        }
        let basic_auth = take_basic_auth(&mut url);
        let host = url.host_str().unwrap_or_default().to_owned();
        let uri = Uri::try_from(String::from(url))
            .map_err(|error| invalid_address(format!("The URL of {host} cannot be requested: {error}.")))?;
        Ok(Self { uri, basic_auth })
    }
}

/// Shows the host only, because the query may contain a key.
impl fmt::Debug for RequestUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("RequestUrl").field(&self.host()).finish()
    }
}

/// The part of an invalid URL that is safe to show: without user, password, path and query.
fn redact(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            (format!("{scheme}://"), rest)
        }
        _ => (String::new(), text),
    };
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = host.split(['/', '?', '#', '&', ';', '=', '\\']).next().unwrap_or_default();
    format!("{scheme}{host}")
}

/// Removes user and password from a URL and returns them as a header.
fn take_basic_auth(url: &mut Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut basic_auth: Vec<u8> = percent_decode_str(url.username()).collect();
    basic_auth.push(b':');
    basic_auth.extend(percent_decode_str(url.password().unwrap_or_default()));
    // Neither can fail for a URL with a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(basic_auth))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn invalid_address(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_url_is_shown_without_secrets() {
        for (text, shown) in [
            ("https://ann:s3cret@host:99999/v1?key=s3cret", "\"https://host:99999\""),
            ("https://ann:s3/c?r#s3cret@host:99999", "\"https://host:99999\""),
            ("https://host:99999/x?mail=a@b&key=s3cret", "\"https://b\""),
            ("https://host:99999/s3cret", "\"https://host:99999\""),
            ("ann:s3cret@host", "A URL that begins with ann:"),
            ("//ann:s3cret@host/x", "\"host\""),
            ("s3cret s3cret://ann@host of mine/x", "\"host of mine\""),
        ] {
            let error = RequestUrl::parse(text).map(drop).unwrap_err();
            assert!(!error.message.contains("s3"), "{text}: {error}");
            assert!(error.message.starts_with(shown), "{text}: {error}");
        }
    }

    #[test]
    fn credentials_become_a_header_and_other_schemes_are_rejected() {
        let request_url = RequestUrl::parse("https://ann:p%40ss@Host.test:8443/a?b=c#d").unwrap();
        assert_eq!(request_url.uri, "https://host.test:8443/a?b=c");
        assert_eq!(request_url.basic_auth.unwrap(), "Basic YW5uOnBAc3M=");
        let plain = RequestUrl::parse("http://[::1]:80/").unwrap();
        assert_eq!((plain.host(), &plain.basic_auth), ("[::1]", &None));
        for (text, part) in [
            ("nonsense", "\"nonsense\" is not a valid URL"),
            ("ftp://host/x", "http:// or https://"),
            ("file:///etc/passwd", "http:// or https://"),
            ("http://", "is not a valid URL"),
        ] {
            let error = RequestUrl::parse(text).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::InvalidRequest, "{text}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }
}
