//! TLS configuration: trusted root certificates of the system and of the user.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;
use whimbrel_os::files;

use super::config::NetworkConfig;
use super::error;
use super::system_roots::{self, MAX_CERTIFICATE_FILE_BYTES};
use crate::error::{ModelError, ModelErrorKind};

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

    /// Returns the configuration that trusts the roots of the system and of the extra files.
    pub(super) fn client_config(&self) -> Result<Arc<ClientConfig>, ModelError> {
        if let Some(tls) = self.client_config.get() {
            return Ok(Arc::clone(tls));
        }
        let hidden_by = system_roots::hiding_variable();
        let mut roots = self.load_extra_roots()?;
        if hidden_by.is_some() {
            roots.extend(system_roots::load());
        }
        let tls = build_client_config(roots).map_err(|error| error::tls_setup_error(&error, hidden_by))?;
        Ok(Arc::clone(self.client_config.get_or_init(|| Arc::new(tls))))
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

fn build_client_config(roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, rustls::Error> {
    let provider =
        CryptoProvider::get_default().map_or_else(|| Arc::new(aws_lc_rs::default_provider()), Arc::clone);
    let verifier = if roots.is_empty() {
        Verifier::new(Arc::clone(&provider))?
    } else {
        Verifier::new_with_extra_roots(roots, Arc::clone(&provider))?
    };
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
