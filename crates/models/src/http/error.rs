//! What went wrong on the line, told as a fault: by what can be done about it, and without passwords or keys.

use std::error::Error;
use std::io;
use std::net::IpAddr;

use hyper_util::client::legacy;
use rustls::CertificateError;

use super::connector::ConnectError;
use super::guarded_fetch::FetchError;
use crate::error::{ModelError, ModelErrorKind};

/// The request did not reach the server, or no answer began. If a proxy read it to pass it on, that is where the
/// connection led.
pub(super) fn send_error(host: &str, passing_on: Option<String>, error: &legacy::Error) -> ModelError {
    // What stands in the way of every connection is told where it is found.
    if let Some(fault) = error_chain(error).find_map(|error| error.downcast_ref::<ModelError>()) {
        return fault.clone();
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
        let peer = passing_on.map_or_else(|| host.to_owned(), |at| describe_proxy(&at, host));
        format!("The connection to {peer} broke before an answer came: {why}.")
    };
    ModelError::new(ModelErrorKind::Connection, message)
}

/// The proxy before a host could not be reached, or did not do what it is for.
fn proxy_error(host: &str, at: &str, error: &legacy::Error) -> ModelError {
    let named = describe_proxy(at, host);
    if let Some(why) = untrusted_reason(error, "Check the address of the proxy.") {
        let message = format!("The certificate of {named} is not trusted: {why}");
        return ModelError::new(ModelErrorKind::Certificate, message);
    }
    // The library says these by their texts only.
    let why = match root_cause(error).as_str() {
        "tunnel error: proxy authorization required" => return proxy_auth_error(host, at),
        "tunnel error: unsuccessful" => "it opens no tunnel there".to_owned(),
        "tunnel error: unexpected end of file" => "it broke off without an answer".to_owned(),
        why => why.to_owned(),
    };
    ModelError::new(ModelErrorKind::Connection, format!("Could not connect through {named}: {why}."))
}

/// The proxy before a host wants to know who we are. It would want that the next time, too.
pub(super) fn proxy_auth_error(host: &str, at: &str) -> ModelError {
    let message = format!(
        "Could not connect through {}: it wants a user and password, or other ones. They belong in its address, as in \
         http://user:password@host:port.",
        describe_proxy(at, host)
    );
    let mut fault = ModelError::new(ModelErrorKind::Connection, message);
    fault.should_retry = Some(false);
    fault
}

/// What a proxy is called, by its host and port.
fn describe_proxy(at: &str, host: &str) -> String {
    format!("the proxy {at} (named in the environment, for {host})")
}

/// The address that was not permitted, if that is what went wrong.
pub(super) fn denied_address(error: &legacy::Error) -> Option<IpAddr> {
    error_chain(error).find_map(|error| match error.downcast_ref::<FetchError>()? {
        FetchError::AddressDenied(address) => Some(*address),
        FetchError::Failed(_) => None,
    })
}

/// The answer broke off.
pub(super) fn receive_error(host: &str, error: &(dyn Error + 'static)) -> ModelError {
    let why = root_cause(error);
    ModelError::new(ModelErrorKind::Cut, format!("The connection to {host} broke in the middle of the answer: {why}."))
}

/// TLS cannot be spoken, for want of root certificates as a rule. Some of them may be missing because a variable names
/// others in their place.
pub(super) fn tls_setup_error(error: &rustls::Error, replaced_by: Option<&str>) -> ModelError {
    let cause = replaced_by.map_or_else(String::new, |variable| {
        format!(" {variable} is set, and names none that can be used: correct or unset it.")
    });
    let message = format!(
        "Secure connections cannot be set up: {error}.{cause} Install the certificates of the system (often a package \
         named ca-certificates), or name a PEM file in NODE_EXTRA_CA_CERTS."
    );
    ModelError::new(ModelErrorKind::Certificate, message)
}

/// The answer is larger than any reply can be. Trying again would only bring it again.
pub(super) fn response_too_large(host: &str) -> ModelError {
    let mut fault = ModelError::new(ModelErrorKind::Protocol, format!("The answer of {host} is too large."));
    fault.should_retry = Some(false);
    fault
}

fn error_chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // An io::Error hides what it wraps from `source`.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|error| error as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

fn connect_error(error: &legacy::Error) -> Option<&ConnectError> {
    error_chain(error).find_map(|error| error.downcast_ref())
}

/// Whether time ran out, ours or that of the system.
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

/// Why a certificate is not trusted, and what can be done about it; also if it is the wrong host that shows it.
fn untrusted_reason(error: &legacy::Error, wrong_host: &'static str) -> Option<String> {
    error_chain(error).find_map(|error| match error.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(why) => Some(explain_certificate_error(why, wrong_host)),
        rustls::Error::NoCertificatesPresented => Some("it shows none.".to_owned()),
        _ => None,
    })
}

fn explain_certificate_error(why: &CertificateError, wrong_host: &'static str) -> String {
    use CertificateError::*;
    let (cause, remedy) = match why {
        UnknownIssuer => (
            "nobody known has signed it".to_owned(),
            "If the server is yours, or a proxy of your company stands between, name its root certificate (a PEM file) in \
             NODE_EXTRA_CA_CERTS.",
        ),
        Expired | ExpiredContext { .. } => {
            ("it has expired".to_owned(), "Check the clock of this machine; its owner may have to renew it.")
        }
        NotValidYet | NotValidYetContext { .. } => {
            ("it is not valid yet".to_owned(), "Check the clock of this machine.")
        }
        NotValidForName | NotValidForNameContext { .. } => ("it is for another host".to_owned(), wrong_host),
        other => (other.to_string(), "The server, or a proxy before it, has to show a better one."),
    };
    format!("{cause}. {remedy}")
}
