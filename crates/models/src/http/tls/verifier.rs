//! Verifies server certificates: with the root certificates of the system and of the user, and by comparison with
//! self-signed certificates that the user trusts.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// Accepts what the platform's verifier accepts. In addition it accepts a server whose certificate is one of the
/// user's root certificates itself: `openssl req -x509` creates such a certificate, and webpki rejects an authority
/// in the place of a server.
#[derive(Debug)]
pub(super) struct ServerVerifier {
    platform: Verifier,
    user_roots: Vec<CertificateDer<'static>>,
}

impl ServerVerifier {
    pub(super) fn new(
        user_roots: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let platform = if user_roots.is_empty() {
            Verifier::new(provider)?
        } else {
            Verifier::new_with_extra_roots(user_roots.iter().cloned(), provider)?
        };
        Ok(Self { platform, user_roots })
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let result =
            self.platform.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match result {
            // webpki checks the period of validity before the role, so the certificate has not expired.
            Err(error) if is_authority_as_server(&error) && self.user_roots.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.platform.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.platform.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.platform.supported_verify_schemes()
    }
}

/// Returns true if the only defect found is that the certificate of an authority identifies the server.
fn is_authority_as_server(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}
