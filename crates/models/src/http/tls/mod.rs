//! TLS: trusted root certificates of the system and of the user, and the handshake. In a build without the feature
//! `tls`, the module `tls_unavailable` takes its place.

mod error;
mod system_roots;
mod verifier;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
#[cfg(feature = "tls")]
use rustls::crypto::aws_lc_rs::default_provider;
#[cfg(all(feature = "tls-ring", not(feature = "tls")))]
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use whimbrel_os::files;

use self::system_roots::MAX_CERTIFICATE_FILE_BYTES;
use self::verifier::ServerVerifier;
use super::config::NetworkConfig;
use super::connector::{BoxError, ConnectError};
use super::stream::ClientStream;
use crate::error::{ModelError, ModelErrorKind};

pub(super) use self::error::untrusted_reason;

/// Sources of root certificates. Files are read when the first TLS connection is made.
pub(super) struct TlsSettings {
    extra_roots: Option<String>,
    shared_roots: Option<String>,
    client_config: OnceLock<Arc<ClientConfig>>,
}

impl TlsSettings {
    pub(super) fn new(config: &NetworkConfig) -> Self {
        let NetworkConfig { extra_roots, shared_roots, .. } = config.clone();
        Self { extra_roots, shared_roots, client_config: OnceLock::new() }
    }

    /// Returns a client that trusts the roots of the system and of the extra files.
    pub(super) fn client(&self) -> Result<TlsClient, ModelError> {
        if let Some(config) = self.client_config.get() {
            return Ok(TlsClient(Arc::clone(config)));
        }
        let hidden_by = system_roots::hiding_variable();
        let mut roots = self.load_extra_roots()?;
        if hidden_by.is_some() {
            roots.extend(system_roots::load());
        }
        let config = build_client_config(roots).map_err(|error| error::tls_setup_error(&error, hidden_by))?;
        Ok(TlsClient(Arc::clone(self.client_config.get_or_init(|| Arc::new(config)))))
    }

    fn load_extra_roots(&self) -> Result<Vec<CertificateDer<'static>>, ModelError> {
        let mut roots = Vec::new();
        if let Some(path) = &self.extra_roots {
            roots = read_certificates(path).map_err(|cause| {
                let message = format!("NODE_EXTRA_CA_CERTS ({path}) cannot be used: {cause}");
                ModelError::new(ModelErrorKind::Certificate, message)
            })?;
        }
        // Usually set for other programs, and sometimes to an empty value on purpose; so errors are ignored.
        roots.extend(self.shared_roots.iter().flat_map(|path| system_roots::load_usable(Path::new(path))));
        Ok(roots)
    }

    /// Returns true if the certificates have been read.
    #[cfg(test)]
    pub(super) fn is_initialized(&self) -> bool {
        self.client_config.get().is_some()
    }
}

/// Starts TLS on a connection.
pub(super) struct TlsClient(Arc<ClientConfig>);

/// A connection with TLS.
pub(super) type TlsConnection = TlsStream<ClientStream>;

impl TlsClient {
    /// Offers HTTP/1.1 only.
    pub(super) fn without_http2(self) -> Self {
        let mut config = Arc::unwrap_or_clone(self.0);
        config.alpn_protocols.clear();
        Self(Arc::new(config))
    }

    /// Runs the handshake with the host of a URL.
    pub(super) async fn handshake(self, stream: ClientStream, host: &str) -> Result<TlsConnection, BoxError> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(|_| ConnectError::InvalidServerName)?;
        Ok(TlsConnector::from(self.0).connect(name, stream).await?)
    }
}

/// Returns true if the handshake selected HTTP/2.
pub(super) fn selected_http2(connection: &TlsConnection) -> bool {
    connection.get_ref().1.alpn_protocol() == Some(b"h2")
}

fn build_client_config(roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, rustls::Error> {
    let provider = CryptoProvider::get_default().map_or_else(|| Arc::new(default_provider()), Arc::clone);
    let verifier = ServerVerifier::new(roots, Arc::clone(&provider))?;
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

/// Reads all certificates of a PEM file; the error says which one is invalid.
fn read_certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = files::read_user_file(Path::new(path), MAX_CERTIFICATE_FILE_BYTES)
        .map_err(|error| format!("{error}."))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| format!("it is not valid PEM: {error}."))?;
    if found.is_empty() {
        return Err("it contains no certificate in PEM form.".to_owned());
    }
    for (number, certificate) in (1..).zip(&found) {
        system_roots::check_root(certificate)
            .map_err(|error| format!("certificate {number} of {} is invalid: {error}.", found.len()))?;
    }
    Ok(found)
}
