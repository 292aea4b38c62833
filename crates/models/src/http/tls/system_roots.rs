//! Root certificates of the system, for processes where an environment variable hides them.
//!
//! On Linux and similar systems they are files. The library that loads them uses `SSL_CERT_FILE` and `SSL_CERT_DIR` of
//! the process if set, and then loads nothing else. Users often set these for one additional certificate, or to an
//! empty value, and expect the system certificates to stay trusted; so this module loads the files itself in that case.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use whimbrel_os::files;

/// Maximum size of a certificate file.
pub(super) const MAX_CERTIFICATE_FILE_BYTES: u64 = 16 << 20;

/// Files and directories where systems store root certificates.
const ROOT_LOCATIONS: &[&str] = &[
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/openssl/certs",
    "/usr/local/etc/ssl/cert.pem",
    "/usr/local/share/certs",
];

/// Returns the variable of this process that makes the library ignore the system certificates.
pub(super) fn hiding_variable() -> Option<&'static str> {
    let reads_variables = cfg!(all(
        unix,
        not(target_vendor = "apple"),
        not(target_os = "android"),
        not(target_arch = "wasm32")
    ));
    let is_set = |name: &&str| match std::env::var_os(name) {
        Some(value) => *name == "SSL_CERT_FILE" || !value.is_empty(),
        None => false,
    };
    ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().find(is_set).filter(|_| reads_variables)
}

/// Loads the root certificates from the files of the system.
pub(super) fn load() -> Vec<CertificateDer<'static>> {
    load_from(ROOT_LOCATIONS)
}

fn load_from<P: AsRef<Path>>(locations: &[P]) -> Vec<CertificateDer<'static>> {
    let files = locations.iter().flat_map(|location| candidate_files(location.as_ref()));
    let mut found: Vec<_> = files.flat_map(|file| load_usable(&file)).collect();
    // Most certificates occur several times under different file names.
    found.sort_unstable_by(|first, other| first.as_ref().cmp(other.as_ref()));
    found.dedup();
    found
}

fn candidate_files(location: &Path) -> Vec<PathBuf> {
    match std::fs::read_dir(location) {
        Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.path()).collect(),
        Err(_) => vec![location.to_owned()],
    }
}

/// Loads the valid certificates of a PEM file; none if it cannot be read.
pub(super) fn load_usable(file: &Path) -> Vec<CertificateDer<'static>> {
    let pem = files::read_user_file(file, MAX_CERTIFICATE_FILE_BYTES).unwrap_or_default();
    let found = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok);
    found.filter(|certificate| check_root(certificate).is_ok()).collect()
}

/// Checks that a certificate can be used as a root.
pub(super) fn check_root(certificate: &CertificateDer<'static>) -> Result<(), rustls::Error> {
    RootCertStore::empty().add(certificate.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate as PEM.
    fn certificate() -> String {
        rcgen::generate_simple_self_signed(["far.test".to_owned()]).unwrap().cert.pem()
    }

    #[test]
    fn roots_are_loaded_once_and_invalid_ones_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let (first, two) = (certificate(), certificate());
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let worse = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        let certs = dir.path().join("certs");
        std::fs::create_dir_all(certs.join("deeper")).unwrap();
        std::fs::write(certs.join("a.pem"), format!("{broken}{first}{worse}{two}")).unwrap();
        std::fs::write(certs.join("1234.0"), &first).unwrap();
        std::fs::write(certs.join("README"), "no certificate").unwrap();
        let (bundle, nowhere) = (dir.path().join("bundle.pem"), dir.path().join("nowhere"));
        std::fs::write(&bundle, certificate()).unwrap();
        assert_eq!(load_from(&[&certs]).len(), 2);
        assert_eq!(load_from(&[nowhere.clone(), certs, bundle]).len(), 3);
        assert_eq!(load_from(&[nowhere]), []);
    }
}
