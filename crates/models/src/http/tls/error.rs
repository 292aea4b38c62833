//! Error messages for TLS: why a certificate is not trusted, and what to do.

use rustls::CertificateError;

use crate::error::{ModelError, ModelErrorKind};

/// Error of the TLS setup, usually missing root certificates. `replaced_by` is the variable that may have replaced
/// those of the system.
pub(super) fn tls_setup_error(error: &rustls::Error, replaced_by: Option<&str>) -> ModelError {
    let cause = replaced_by.map_or_else(String::new, |variable| {
        format!(" {variable} is set but names no usable certificates: correct or unset it.")
    });
    let message = format!(
        "Secure connections cannot be set up: {error}.{cause} Install the certificates of the system (often a package \
         named ca-certificates), or name a PEM file in NODE_EXTRA_CA_CERTS."
    );
    ModelError::new(ModelErrorKind::Certificate, message)
}

/// Explains why a certificate is not trusted, with a remedy; `None` for errors that are not about a certificate.
/// `wrong_host` is the remedy for a certificate of another host.
pub(in crate::http) fn untrusted_reason(
    error: &(dyn std::error::Error + 'static),
    wrong_host: &'static str,
) -> Option<String> {
    match error.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(why) => Some(explain_certificate_error(why, wrong_host)),
        rustls::Error::NoCertificatesPresented => Some("it presents none.".to_owned()),
        _ => None,
    }
}

fn explain_certificate_error(why: &CertificateError, wrong_host: &'static str) -> String {
    use CertificateError::*;
    let (cause, remedy) = match why {
        UnknownIssuer => (
            "its issuer is unknown".to_owned(),
            "If it is your own server, or a proxy of your company intercepts the connection, name the root certificate \
             (a PEM file) in NODE_EXTRA_CA_CERTS.",
        ),
        Expired | ExpiredContext { .. } => (
            "it has expired".to_owned(),
            "Check the clock of this machine; the owner of the server may have to renew it.",
        ),
        NotValidYet | NotValidYetContext { .. } => {
            ("it is not valid yet".to_owned(), "Check the clock of this machine.")
        }
        NotValidForName | NotValidForNameContext { .. } => ("it is for another host".to_owned(), wrong_host),
        other => (other.to_string(), "The server, or a proxy in front of it, must present a valid one."),
    };
    format!("{cause}. {remedy}")
}
