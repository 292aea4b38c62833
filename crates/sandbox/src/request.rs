//! What the launcher is told and what it reports, and how both travel: a sealed file in memory for the request, whose
//! descriptor arrives over the launcher's stdin, a socket; one message per report on the same socket.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

use crate::plan::MountPlan;
use crate::policy::{Limits, NestedNamespaces, UnixSockets};

/// Largest size of a request.
const MAX_REQUEST: u64 = 4 << 20;

/// What the launcher does.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Run(Box<RunRequest>),
    /// Makes the namespaces that the commands of a session share and hands them over.
    MakeSession {
        network: SessionNetwork,
    },
}

/// Whether the network namespace is made with the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SessionNetwork {
    PerCommand,
    Shared,
}

/// A command and its confinement.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunRequest {
    pub(crate) backend: Backend,
    pub(crate) namespaces: NamespaceSource,
    pub(crate) files: Option<MountPlan>,
    pub(crate) proc_mount: ProcMount,
    pub(crate) network: NetworkSetup,
    pub(crate) unix_sockets: UnixSockets,
    pub(crate) nested: NestedNamespaces,
    pub(crate) limits: Limits,
    pub(crate) input: Input,
    pub(crate) command: CommandLine,
}

/// What makes the namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Backend {
    Launcher,
    /// bwrap has made namespaces and mounts already.
    Bwrap,
}

/// Which namespaces come with the request, as descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NamespaceSource {
    New,
    SharedUser,
    SharedUserAndNetwork,
}

/// Which `/proc` the command sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProcMount {
    Fresh,
    Machine,
}

/// What is made in the network namespace of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NetworkSetup {
    /// The namespace exists already.
    Shared,
    Loopback,
    /// The listening socket of the proxy is handed over.
    LoopbackWithListener,
}

/// What the command reads as its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Input {
    Nothing,
    /// The last descriptor that comes with the request.
    Passed,
}

/// The program and what it gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandLine {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<Bytes>,
    pub(crate) environment: Vec<(Bytes, Bytes)>,
    pub(crate) directory: PathBuf,
}

/// Bytes that are text in nearly all cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    Text(String),
    Raw(Vec<u8>),
}

impl From<OsString> for Bytes {
    fn from(text: OsString) -> Self {
        text.into_string().map_or_else(|raw| Self::Raw(raw.into_vec()), Self::Text)
    }
}

impl Bytes {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Raw(raw) => raw,
        }
    }
}

/// What the launcher reports.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The namespaces of a session, as descriptors.
    Session,
    /// The listening socket of the proxy, as a descriptor.
    Listener,
    /// A layer could not be set up; the command did not run.
    Failed(LayerError),
    Exited(ExitStatus),
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

impl ExitStatus {
    /// Returns the exit code as a shell reports it.
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// A layer of the confinement that could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{layer}: {reason}")]
pub struct LayerError {
    pub layer: String,
    pub reason: String,
    /// Number of the error in the kernel, if it is one.
    pub errno: Option<i32>,
}

impl LayerError {
    pub(crate) fn new(layer: &str, error: &io::Error) -> Self {
        Self { layer: layer.to_owned(), reason: error.to_string(), errno: error.raw_os_error() }
    }

    pub(crate) fn for_path(layer: &str, path: &Path, error: &io::Error) -> Self {
        let reason = format!("{}: {error}", path.display());
        Self { layer: layer.to_owned(), reason, errno: error.raw_os_error() }
    }
}

/// Writes a request into a file in memory. Unlike a pipe it is never full, so that the caller does not wait.
pub(crate) fn write_request(request: &Request) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("sandbox-request", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(request)?)?;
    file.rewind()?;
    Ok(file.into())
}

/// Reads a request.
pub(crate) fn read_request(file: OwnedFd) -> io::Result<Request> {
    let mut data = Vec::new();
    File::from(file).take(MAX_REQUEST + 1).read_to_end(&mut data)?;
    if data.len() as u64 > MAX_REQUEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the request is larger than 4 MiB"));
    }
    Ok(serde_json::from_slice(&data)?)
}

/// Makes `Bytes` of borrowed text.
pub(crate) fn to_bytes(text: impl AsRef<std::ffi::OsStr>) -> Bytes {
    text.as_ref().to_owned().into()
}

/// Makes a C string, which has no zero in it.
pub(crate) fn to_c_string(bytes: &[u8]) -> io::Result<std::ffi::CString> {
    std::ffi::CString::new(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a text has a zero byte"))
}

/// Makes the C string of a path.
pub(crate) fn path_to_c_string(path: &Path) -> io::Result<std::ffi::CString> {
    to_c_string(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_with_bytes_that_are_no_text_survives() {
        let command = CommandLine {
            program: "/bin/sh".into(),
            arguments: vec![to_bytes("a"), OsString::from_vec(vec![0xff, 1]).into()],
            environment: vec![(to_bytes("A"), to_bytes("b=c"))],
            directory: "/".into(),
        };
        let request = Request::Run(Box::new(RunRequest {
            backend: Backend::Launcher,
            namespaces: NamespaceSource::New,
            files: None,
            proc_mount: ProcMount::Fresh,
            network: NetworkSetup::Loopback,
            input: Input::Nothing,
            unix_sockets: UnixSockets::Closed,
            nested: NestedNamespaces::Refused,
            limits: Limits::default(),
            command: command.clone(),
        }));
        let Request::Run(read) = read_request(write_request(&request).unwrap()).unwrap() else { panic!() };
        assert_eq!(read.command, command);
    }
}
