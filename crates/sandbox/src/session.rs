//! Starts confined commands. A session keeps what its commands share: covers, namespaces, the proxy.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::net::RecvFlags;

use crate::appeared::NamesBefore;
use crate::control;
use crate::covers::Covers;
use crate::plan::{MountPlan, Presence};
use crate::policy::{FileLayer, LoopbackScope, Network, Policy, ProcView};
use crate::proxy::{Listening, Proxy};
use crate::request::{
    Backend, CommandLine, Input, LayerError, NamespaceSource, NetworkSetup, ProcMount, Report, Request,
    RunRequest, SessionNetwork, to_bytes, write_request,
};
use crate::resolve::{MarkKind, RepositoryCache, ResolveError, Variables, find_marks, find_roots};
use crate::tier::{Sandbox, Tier};
use crate::violations::Appeared;

mod bwrap;

/// A command to run.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Arguments without the name of the program.
    pub arguments: Vec<OsString>,
    /// The whole environment, to which the session adds `TMPDIR` and the variables of the proxy.
    pub environment: BTreeMap<OsString, OsString>,
    pub directory: PathBuf,
    /// Name of the command in reports of the proxy.
    pub id: String,
    /// What the command reads as its standard input; nothing without it.
    pub input: Option<Arc<OwnedFd>>,
}

/// A command cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Policy(#[from] ResolveError),
    #[error("covers for protected names cannot be made: {0}")]
    Covers(io::Error),
    #[error("the sandbox could not be set up: {0}")]
    Layer(#[from] LayerError),
    #[error("the policy allows hosts, but the session has no proxy")]
    NoProxy,
    #[error("this machine refuses a fresh /proc, and the policy asks for one")]
    ProcRefused,
    #[error("the launcher cannot be started: {0}")]
    Launcher(#[from] io::Error),
}

/// What commands of one session share. Dropping it removes the covers: end its commands first, for a command that still runs
/// could create the names that were covered.
#[derive(Debug)]
pub struct Session {
    sandbox: Sandbox,
    journals: PathBuf,
    covers: Option<Covers>,
    /// The working directories whose covers are shared with other sessions.
    shared_folders: Vec<PathBuf>,
    /// Each command that has not ended holds a reference.
    running: Arc<()>,
    repositories: RepositoryCache,
    namespaces: Option<SharedNamespaces>,
    proxy: Option<Arc<Proxy>>,
}

#[derive(Debug)]
struct SharedNamespaces {
    user: OwnedFd,
    network: Option<OwnedFd>,
    /// The proxy in the shared network.
    _listening: Option<Listening>,
}

/// A launcher that waits to be started: spawn the command, whose stdin is taken, and follow it with
/// [`crate::child::ConfinedChild`].
#[derive(Debug)]
pub struct PreparedCommand {
    /// The launcher. Its stdout and stderr become those of the confined command.
    pub command: Command,
    /// What the command finds where; `None` without a file layer.
    pub plan: Option<MountPlan>,
    /// What the command left behind, once it has ended.
    pub left_behind: LeftBehind,
    pub(crate) control: OwnedFd,
    pub(crate) proxy: Option<Arc<Proxy>>,
    pub(crate) end: CommandEnd,
}

/// What a command left behind and what has become of it. Empty before its end.
#[derive(Debug, Clone, Default)]
pub struct LeftBehind(Arc<Mutex<Vec<Appeared>>>);

impl LeftBehind {
    /// Takes what has been found.
    pub fn take(&self) -> Vec<Appeared> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The end of a command: drop it when everything that the command started is gone, however it ended. Then entries that
/// would mislead git are removed. Accesses the disk.
#[derive(Debug)]
pub struct CommandEnd {
    before: NamesBefore,
    left_behind: LeftBehind,
    _running: Arc<()>,
}

impl Drop for CommandEnd {
    fn drop(&mut self) {
        *self.left_behind.0.lock().unwrap_or_else(PoisonError::into_inner) = self.before.sweep();
    }
}

/// The file layer of one command.
#[derive(Debug, Default)]
pub(crate) struct PlannedFiles {
    pub(crate) plan: Option<MountPlan>,
    pub(crate) before: NamesBefore,
}

impl Session {
    /// Makes a session. `journals` is the folder in which all sessions of this user note their covers. Nothing is made
    /// before the first command.
    pub fn new(sandbox: Sandbox, journals: impl Into<PathBuf>) -> Self {
        Self {
            sandbox,
            journals: journals.into(),
            covers: None,
            shared_folders: Vec::new(),
            running: Arc::default(),
            repositories: RepositoryCache::default(),
            namespaces: None,
            proxy: None,
        }
    }

    /// Sets the proxy, which policies with a network need.
    #[must_use]
    pub fn with_proxy(mut self, proxy: Arc<Proxy>) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Replaces the tier, for commands from now on.
    pub fn set_sandbox(&mut self, sandbox: Sandbox) {
        self.sandbox = sandbox;
    }

    /// Makes the folder for temporary files below `parent`, for policies of this session.
    pub fn make_scratch(&mut self, parent: &Path) -> io::Result<PathBuf> {
        self.open_covers()?.make_scratch(parent)
    }

    /// Removes the covers if no command runs, and returns whether it did; the next command makes them again. For work
    /// outside of the sandbox that creates a name which is covered.
    pub fn uncover(&mut self) -> io::Result<bool> {
        if Arc::strong_count(&self.running) > 1 {
            return Ok(false);
        }
        self.shared_folders.clear();
        self.covers.as_mut().map_or(Ok(()), Covers::remove)?;
        Ok(true)
    }

    /// Returns whether the entry at a real path is a cover.
    pub fn has_cover(&self, path: &Path) -> bool {
        self.covers.as_ref().is_some_and(|covers| covers.has(path))
    }

    fn open_covers(&mut self) -> io::Result<&mut Covers> {
        match &mut self.covers {
            Some(covers) => Ok(covers),
            none => Ok(none.insert(Covers::open(&self.journals)?)),
        }
    }

    /// Prepares a command. With a proxied network, the caller runs on a tokio runtime.
    pub fn prepare(&mut self, policy: &Policy, spec: CommandSpec) -> Result<PreparedCommand, StartError> {
        let files = self.plan_files(policy, Variables::from_environment(&spec.environment))?;
        self.prepare_planned(policy, files, spec)
    }

    /// Prepares a command whose mounts are planned already.
    pub(crate) fn prepare_planned(
        &mut self,
        policy: &Policy,
        files: PlannedFiles,
        spec: CommandSpec,
    ) -> Result<PreparedCommand, StartError> {
        let PlannedFiles { plan: files, before } = files;
        let proxy = match policy.network {
            Network::Isolated => None,
            Network::Proxied(_) => Some(Arc::clone(self.proxy.as_ref().ok_or(StartError::NoProxy)?)),
        };
        let proc_mount = match (self.sandbox.tier(), policy.proc_view) {
            (Tier::Namespaces | Tier::Bwrap, _) => ProcMount::Fresh,
            (Tier::MachineProc, ProcView::MachineIfRefused) => ProcMount::Machine,
            (Tier::MachineProc, ProcView::Own) => return Err(StartError::ProcRefused),
        };
        let plan = files.clone();
        let input = spec.input.clone();
        let request = RunRequest {
            input: if input.is_some() { Input::Passed } else { Input::Nothing },
            backend: if self.sandbox.tier() == Tier::Bwrap { Backend::Bwrap } else { Backend::Launcher },
            namespaces: self.choose_namespaces(policy.network)?,
            files,
            proc_mount,
            network: match policy.network {
                Network::Isolated => NetworkSetup::Loopback,
                Network::Proxied(LoopbackScope::Session) if self.sandbox.tier() != Tier::Bwrap => {
                    NetworkSetup::Shared
                }
                Network::Proxied(_) => NetworkSetup::LoopbackWithListener,
            },
            unix_sockets: policy.unix_sockets.clone(),
            nested: policy.namespaces,
            limits: policy.limits.clone(),
            command: self.make_command_line(policy, proxy.as_deref(), spec),
        };
        let (command, control) = self.prepare_request(&Request::Run(Box::new(request)), input.as_deref())?;
        let left_behind = LeftBehind::default();
        let end =
            CommandEnd { before, left_behind: left_behind.clone(), _running: Arc::clone(&self.running) };
        Ok(PreparedCommand { command, plan, left_behind, control, proxy, end })
    }

    /// Looks at the file system, makes covers, and returns the plan of mounts.
    fn plan_files(&mut self, policy: &Policy, variables: Variables<'_>) -> Result<PlannedFiles, StartError> {
        if policy.files == FileLayer::Open {
            return Ok(PlannedFiles::default());
        }
        let roots = find_roots(policy)?;
        let mut marks = find_marks(policy, &roots, variables, &mut self.repositories)?;
        // The tunnel for ssh is this program.
        marks.add(&self.sandbox.launcher().path, MarkKind::Readable, Presence::Optional);
        let shared = std::mem::take(&mut self.shared_folders);
        let covers = self.open_covers().map_err(StartError::Covers)?;
        // The journals say what the next session removes, and who holds their lock stops all sessions.
        marks.add(covers.folder(), MarkKind::AlwaysHidden, Presence::Required);
        for folder in roots.covered.iter().filter(|folder| !shared.contains(folder)) {
            covers.share(folder).map_err(StartError::Covers)?;
        }
        for path in covers.make(&marks.missing_names()).map_err(StartError::Covers)? {
            marks.add(&path, MarkKind::ReadOnly, Presence::Required);
        }
        let before = NamesBefore::note(&roots, marks.git_folders());
        self.shared_folders = roots.covered;
        Ok(PlannedFiles { plan: Some(marks.into_plan()), before })
    }

    fn choose_namespaces(&mut self, network: Network) -> Result<NamespaceSource, StartError> {
        let shared = match network {
            _ if self.sandbox.tier() == Tier::Bwrap => return Ok(NamespaceSource::New),
            Network::Proxied(LoopbackScope::Session) => SessionNetwork::Shared,
            Network::Isolated | Network::Proxied(LoopbackScope::Command) => SessionNetwork::PerCommand,
        };
        let is_enough = |namespaces: &SharedNamespaces| {
            shared == SessionNetwork::PerCommand || namespaces.network.is_some()
        };
        if !self.namespaces.as_ref().is_some_and(is_enough) {
            self.namespaces = Some(self.make_namespaces(shared)?);
        }
        Ok(match shared {
            SessionNetwork::PerCommand => NamespaceSource::SharedUser,
            SessionNetwork::Shared => NamespaceSource::SharedUserAndNetwork,
        })
    }

    /// Starts the launcher to make the namespaces of this session, and waits for it.
    fn make_namespaces(&self, network: SessionNetwork) -> Result<SharedNamespaces, StartError> {
        let (mut command, control) = self.prepare_request(&Request::MakeSession { network }, None)?;
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        // Its end of the socket is in the command, and must be closed here for the end to be noticed.
        drop(command);
        let message = control::receive(&control, RecvFlags::empty());
        child.wait()?;
        let message = message?.ok_or_else(|| io::Error::other("it ended without a report"))?;
        let mut descriptors = message.descriptors.into_iter();
        match serde_json::from_slice(&message.data).map_err(io::Error::other)? {
            Report::Failed(error) => return Err(error.into()),
            Report::Session => {}
            Report::Listener | Report::Exited(_) => return Err(io::Error::other("unexpected report").into()),
        }
        let user = descriptors.next().ok_or_else(|| io::Error::other("no namespace came with the report"))?;
        let network = descriptors.next();
        let listening = match (descriptors.next(), &self.proxy) {
            (Some(listener), Some(proxy)) => Some(proxy.serve(listener.into())?),
            _ => None,
        };
        Ok(SharedNamespaces { user, network, _listening: listening })
    }

    /// Returns the launcher, and our end of its control socket.
    fn prepare_request(
        &self,
        request: &Request,
        input: Option<&OwnedFd>,
    ) -> Result<(Command, OwnedFd), StartError> {
        let (ours, theirs) = control::make_pair()?;
        let file = write_request(request)?;
        let mut descriptors = vec![file.as_fd()];
        if let (Request::Run(run), Some(namespaces)) = (request, &self.namespaces) {
            match run.namespaces {
                NamespaceSource::New => {}
                NamespaceSource::SharedUser => descriptors.push(namespaces.user.as_fd()),
                NamespaceSource::SharedUserAndNetwork => {
                    descriptors.push(namespaces.user.as_fd());
                    descriptors.extend(namespaces.network.as_ref().map(AsFd::as_fd));
                }
            }
        }
        descriptors.extend(input.map(AsFd::as_fd));
        // It waits in the socket until the launcher reads it.
        control::send(&ours, b"request", &descriptors)?;
        let mut command = match request {
            Request::Run(run) if run.backend == Backend::Bwrap => bwrap::command(&self.sandbox, run),
            _ => self.sandbox.launcher().command(),
        };
        command.env_clear().stdin(theirs);
        Ok((command, ours))
    }

    fn make_command_line(&self, policy: &Policy, proxy: Option<&Proxy>, spec: CommandSpec) -> CommandLine {
        let CommandSpec { program, arguments, mut environment, directory, id, input: _ } = spec;
        environment.insert("TMPDIR".into(), policy.scratch.clone().into());
        if let Some(proxy) = proxy {
            environment.extend(proxy.variables(&id, &self.sandbox.launcher().path));
        }
        let name = program.as_os_str().to_owned();
        CommandLine {
            program,
            arguments: std::iter::once(name).chain(arguments).map(to_bytes).collect(),
            environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            directory,
        }
    }
}

/// Finds a program as a shell does.
pub fn find_program(name: &OsStr, search_path: &OsStr) -> Option<PathBuf> {
    if Path::new(name).components().count() > 1 {
        return std::path::absolute(name).ok();
    }
    std::env::split_paths(search_path).map(|folder| folder.join(name)).find(|path| path.is_file())
}
