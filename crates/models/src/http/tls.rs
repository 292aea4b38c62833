//! Whose certificates are trusted: those of the system, and what the user names.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;

use super::config::NetworkConfig;
use super::system_roots::{self, MAX_CERTIFICATE_FILE_BYTES};
use super::error;
use crate::error::{ModelError, ModelErrorKind};
use crate::regular_file;

/// What TLS is spoken with. Nothing is read before the first connection that needs it.
pub(super) struct TlsSettings {
    extra_roots: Option<String>,
    shared_roots: Option<String>,
    client_config: OnceLock<Arc<ClientConfig>>,
}

impl TlsSettings {
    pub(super) fn new(route: &NetworkConfig) -> Self {
        let NetworkConfig { extra_roots, shared_roots, .. } = route.clone();
        Self { extra_roots, shared_roots, client_config: OnceLock::new() }
    }

    /// Trusts the roots of the system, and those of the extra files.
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
            roots = read_certificates(path).map_err(|why| {
                let message = format!("NODE_EXTRA_CA_CERTS ({path}) cannot be used: {why}");
                ModelError::new(ModelErrorKind::Certificate, message)
            })?;
        }
        // Set for other programs as a rule, and sometimes to nothing on purpose.
        roots.extend(self.shared_roots.iter().flat_map(|path| system_roots::load_usable(Path::new(path))));
        Ok(roots)
    }

    /// Whether anything has been read.
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

/// The certificates in a PEM file, all of them; an error says why not.
fn read_certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = regular_file::read(Path::new(path), MAX_CERTIFICATE_FILE_BYTES)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| format!("what stands in it is no PEM: {error}."))?;
    if found.is_empty() {
        return Err("it holds no certificate in PEM form.".to_owned());
    }
    for (number, certificate) in (1..).zip(&found) {
        system_roots::check_root(certificate).map_err(|error| {
            format!("certificate {number} of {} in it cannot be understood: {error}.", found.len())
        })?;
    }
    Ok(found)
}
