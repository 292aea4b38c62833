//! Testing agents: scripted models, a mock of the model APIs with fault injection, a host with timeouts, and scenarios
//! that every form of the engine must run alike.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use serde_json::json;
//! use whimbrel_testkit::{Host, Reply};
//! use whimbrel_wire::permission::PermissionResult;
//!
//! let script = [Reply::tool("Bash", json!({"command": "rm notes.txt"})), Reply::text("I may not.")];
//! let mut host = Host::with_script(script)
//!     .file("notes.txt", "keep me")
//!     .can_use_tool(|ask| PermissionResult::deny(format!("{} is not for you", ask.tool_name)))
//!     .start()
//!     .await
//!     .unwrap();
//! let result = host.run("Tidy up.").await.unwrap();
//! assert_eq!(result.result.as_deref(), Some("I may not."));
//! assert!(host.model_requests()[1].contains_text("Bash is not for you"));
//! assert!(host.dirs().files().unwrap().contains_key("notes.txt"));
//! # })
//! ```
//!
//! Modules:
//! - [`script`]: the replies of a scripted model, as values
//! - [`http_mock`]: a model API on loopback that plays a script; [`scripted_model`]: the same without a network
//! - [`oauth_mock`]: an MCP server that requires OAuth, with its authorization server
//! - [`host`]: a host that starts an engine on a script and exchanges frames with it
//! - `agent_test`: an agent of the Rust SDK on a script, with its own tools and callbacks (feature `sdk`)
//! - [`scenario`]: recorded sessions with expected frames, run in process and as a program
//! - [`kill_test`]: kills a program at random moments and checks that its session survives
//! - [`store_contract`]: checks that every session store must pass
//! - [`test_dirs`]: directories and environment of one run; [`session_dirs`]: directories of consecutive sessions
//! - [`pattern`]: partial matching of JSON; [`normalize`]: removal of ids, times and paths that differ from run to run

#![deny(missing_docs)]

#[cfg(feature = "sdk")]
pub mod agent_test;
mod api_format;
pub mod host;
pub mod http_mock;
pub mod kill_test;
pub mod normalize;
pub mod oauth_mock;
pub mod pattern;
pub mod scenario;
pub mod script;
pub mod scripted_model;
pub mod session_dirs;
pub mod store_contract;
pub mod test_dirs;

pub use host::{EngineExit, Host, HostBuilder, HostResponse};
pub use http_mock::{MockApi, RecordedRequest};
pub use kill_test::KillTest;
pub use oauth_mock::OauthMock;
pub use scenario::{Scenario, ScenarioRun, assert_same};
pub use script::{Fault, ModelRequest, Reply, Script};
pub use session_dirs::SessionDirs;
pub use test_dirs::TestDirs;
