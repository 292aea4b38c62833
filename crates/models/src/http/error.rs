//! Converts network errors to [`ModelError`], classified by what the user can do and without passwords or keys.

use std::error::Error;
use std::io;
use std::net::IpAddr;

use hyper_util::client::legacy;

use super::connector::ConnectError;
use super::guarded_fetch::FetchError;
use super::tls;
use crate::error::{ModelError, ModelErrorKind};

/// Error for a request that did not reach the server or got no response. `forwarding_proxy` is the
/// proxy that received the request in place of the server.
pub(super) fn send_error(host: &str, forwarding_proxy: Option<String>, error: &legacy::Error) -> ModelError {
    // A configuration error found while connecting is returned unchanged.
    if let Some(model_error) = error_chain(error).find_map(|error| error.downcast_ref::<ModelError>()) {
        return model_error.clone();
    }
    match connect_error(error) {
        Some(why @ ConnectError::UnsupportedProxy(_)) => {
            return ModelError::new(ModelErrorKind::InvalidRequest, why.to_string());
        }
        Some(ConnectError::Proxy { at, .. }) => return proxy_error(host, at, error),
        _ => {}
    }
    if let Some(why) = untrusted_reason(error, "Check the base URL.") {
        return ModelError::new(
            ModelErrorKind::Certificate,
            format!("The certificate of {host} is not trusted: {why}"),
        );
    }
    let why = root_cause(error);
    let message = if error.is_connect() && is_timeout(error) {
        format!("Could not connect to {host} in time.")
    } else if error.is_connect() {
        format!("Could not connect to {host}: {why}.")
    } else {
        let peer = forwarding_proxy.map_or_else(|| host.to_owned(), |at| describe_proxy(&at, host));
        format!("The connection to {peer} broke before a response arrived: {why}.")
    };
    ModelError::new(ModelErrorKind::Connection, message)
}

/// Error of a proxy that could not be reached or did not open the tunnel.
fn proxy_error(host: &str, at: &str, error: &legacy::Error) -> ModelError {
    let proxy = describe_proxy(at, host);
    if let Some(why) = untrusted_reason(error, "Check the URL of the proxy.") {
        let message = format!("The certificate of {proxy} is not trusted: {why}");
        return ModelError::new(ModelErrorKind::Certificate, message);
    }
    // The library distinguishes these by their texts only.
    let why = match root_cause(error).as_str() {
        "tunnel error: proxy authorization required" => return proxy_auth_error(host, at),
        "tunnel error: unsuccessful" => "it does not open the tunnel".to_owned(),
        "tunnel error: unexpected end of file" => "it closed the connection without a response".to_owned(),
        why => why.to_owned(),
    };
    ModelError::new(ModelErrorKind::Connection, format!("Could not connect through {proxy}: {why}."))
}

/// Error of a proxy that requires credentials. Not retried, because they would be required again.
pub(super) fn proxy_auth_error(host: &str, at: &str) -> ModelError {
    let message = format!(
        "Could not connect through {}: it requires a valid user and password. Add them to its URL, as in \
         http://user:password@host:port.",
        describe_proxy(at, host)
    );
    let mut model_error = ModelError::new(ModelErrorKind::Connection, message);
    model_error.should_retry = Some(false);
    model_error
}

/// Name of a proxy in error messages.
fn describe_proxy(at: &str, host: &str) -> String {
    format!("the proxy {at} (named in the environment, for {host})")
}

/// Returns the denied IP address, if that was the cause.
pub(super) fn denied_address(error: &legacy::Error) -> Option<IpAddr> {
    error_chain(error).find_map(|error| match error.downcast_ref::<FetchError>()? {
        FetchError::AddressDenied(address) => Some(*address),
        FetchError::Failed(_) => None,
    })
}

/// Error of a connection that broke within a response.
pub(super) fn receive_error(host: &str, error: &(dyn Error + 'static)) -> ModelError {
    let why = root_cause(error);
    ModelError::new(
        ModelErrorKind::Cut,
        format!("The connection to {host} broke within the response: {why}."),
    )
}

/// Error of a response beyond the size limit. Not retried, because the same response would come again.
pub(super) fn response_too_large(host: &str) -> ModelError {
    let mut model_error =
        ModelError::new(ModelErrorKind::Protocol, format!("The response of {host} is too large."));
    model_error.should_retry = Some(false);
    model_error
}

fn error_chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // An io::Error does not return what it wraps from `source`.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|error| error as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

fn connect_error(error: &legacy::Error) -> Option<&ConnectError> {
    error_chain(error).find_map(|error| error.downcast_ref())
}

/// Returns true if a timeout elapsed, ours or the system's.
fn is_timeout(error: &legacy::Error) -> bool {
    error_chain(error).any(|error| {
        matches!(error.downcast_ref(), Some(ConnectError::Timeout))
            || error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
            || error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout)
    })
}

fn root_cause(error: &(dyn Error + 'static)) -> String {
    error_chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// Explains why a certificate is not trusted, if that was the cause. `wrong_host` is the remedy for a certificate of
/// another host.
fn untrusted_reason(error: &legacy::Error, wrong_host: &'static str) -> Option<String> {
    error_chain(error).find_map(|error| tls::untrusted_reason(error, wrong_host))
}
