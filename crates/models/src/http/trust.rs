//! Whose certificates are trusted: those of the system, and what the user names.

use std::path::Path;
use std::sync::Arc;

use reqwest::{Certificate, ClientBuilder};

use super::Route;
use crate::fault::{Fault, FaultKind};
use crate::plain_file;

impl Route {
    /// Trusts the roots of the system, and those of the extra files.
    pub(super) fn trust(&self, builder: ClientBuilder) -> Result<ClientBuilder, Fault> {
        let mut roots = Vec::new();
        if let Some(path) = &self.extra_roots {
            roots = certificates(path).map_err(|why| {
                let message = format!("NODE_EXTRA_CA_CERTS ({path}) cannot be used: {why}");
                Fault::new(FaultKind::Certificate, message)
            })?;
        }
        // Set for other programs as a rule, and sometimes to nothing on purpose.
        roots.extend(self.shared_roots.iter().filter_map(|path| certificates(path).ok()).flatten());
        Ok(if roots.is_empty() { builder } else { builder.tls_certs_merge(roots) })
    }
}

/// The most bytes that a file of certificates may have.
const MOST_CERTIFICATES: u64 = 16 << 20;

/// The certificates in a PEM file; an error says why there are none.
fn certificates(path: &str) -> Result<Vec<Certificate>, String> {
    let pem = plain_file::read(Path::new(path), MOST_CERTIFICATES)?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(found) if found.is_empty() => Err("it holds no certificate in PEM form.".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("{error}.")),
    }
}

/// Keeps the client from reading the system's root certificates: it gets a TLS setup that trusts nobody.
pub(super) fn nobody(builder: ClientBuilder) -> Result<ClientBuilder, Fault> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::new(FaultKind::Certificate, error.to_string()))?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(builder.tls_backend_preconfigured(tls))
}
