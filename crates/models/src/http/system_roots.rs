//! The root certificates of the system, where a variable of the process hides them.
//!
//! On Linux and its kin they are files. The library that reads them goes by `SSL_CERT_FILE` and `SSL_CERT_DIR` of the
//! process, and then reads nothing else. These variables are often set for one more certificate, or to nothing at all,
//! and nobody expects the rest to be gone; so we read the files ourselves then.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::regular_file;

/// The most bytes that a file of certificates may have.
pub(super) const MAX_CERTIFICATE_FILE_BYTES: u64 = 16 << 20;

/// Where systems keep their roots: files, and folders with files.
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

/// The variable of this process that hides the roots of the system from those who look for them.
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

/// The roots of the system, as they lie in its files.
pub(super) fn load() -> Vec<CertificateDer<'static>> {
    load_from(ROOT_LOCATIONS)
}

fn load_from<P: AsRef<Path>>(places: &[P]) -> Vec<CertificateDer<'static>> {
    let files = places.iter().flat_map(|place| candidate_files(place.as_ref()));
    let mut found: Vec<_> = files.flat_map(|file| load_usable(&file)).collect();
    // Most are there several times, under several names.
    found.sort_unstable_by(|one, other| one.as_ref().cmp(other.as_ref()));
    found.dedup();
    found
}

fn candidate_files(place: &Path) -> Vec<PathBuf> {
    match std::fs::read_dir(place) {
        Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.path()).collect(),
        Err(_) => vec![place.to_owned()],
    }
}

/// The certificates in a PEM file that can be used; nothing if it cannot be read.
pub(super) fn load_usable(file: &Path) -> Vec<CertificateDer<'static>> {
    let pem = regular_file::read(file, MAX_CERTIFICATE_FILE_BYTES).unwrap_or_default();
    let found = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok);
    found.filter(|certificate| check_root(certificate).is_ok()).collect()
}

/// Whether a certificate can be understood.
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
    fn roots_are_found_in_files_and_folders_once_each_and_what_is_none_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (certificate(), certificate());
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let worse = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        let certs = folder.path().join("certs");
        std::fs::create_dir_all(certs.join("deeper")).unwrap();
        std::fs::write(certs.join("a.pem"), format!("{broken}{one}{worse}{two}")).unwrap();
        std::fs::write(certs.join("1234.0"), &one).unwrap();
        std::fs::write(certs.join("README"), "no certificate").unwrap();
        let (bundle, nowhere) = (folder.path().join("bundle.pem"), folder.path().join("nowhere"));
        std::fs::write(&bundle, certificate()).unwrap();
        assert_eq!(load_from(&[&certs]).len(), 2);
        assert_eq!(load_from(&[nowhere.clone(), certs, bundle]).len(), 3);
        assert_eq!(load_from(&[nowhere]), []);
    }
}
