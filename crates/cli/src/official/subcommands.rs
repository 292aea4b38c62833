//! Subcommands of the official program.

use super::Support::{self, Refused, Supported};
use crate::subcommands::is_own_subcommand;

/// A subcommand of the official program: its names, each of one or two words, and what becomes of it.
type OfficialSubcommand = (&'static [&'static str], Support);

/// Remedy for subcommands that manage background sessions.
const NO_BACKGROUND: Support = Refused(
    "There are no background sessions. `whimbrel sessions` lists stored sessions; end a running one with its process.",
);

/// Remedy for subcommands that install the program.
const NO_INSTALLER: Support =
    Refused("The program does not change its own files. Replace it the way it was installed.");

/// Remedy for subcommands that manage a login.
const NO_LOGIN: Support = Refused(
    "There is no login. Set ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, or apiKeyHelper in the settings; see `whimbrel \
        auth status`.",
);

/// Remedy for subcommands that delete the state of a project.
const NO_PURGE: Support = Refused("Delete sessions with `whimbrel sessions delete ID`.");

/// The official subcommands, by name.
pub(crate) const OFFICIAL_SUBCOMMANDS: &[OfficialSubcommand] = &[
    (&["agents"], Support::Partly("it lists agent definitions; there are no background sessions")),
    (&["attach"], NO_BACKGROUND),
    (&["auth status"], Supported),
    (&["auth login"], NO_LOGIN),
    (&["auth logout"], NO_LOGIN),
    (&["auto-mode"], Refused("Rules and modes decide. See `whimbrel permissions explain`.")),
    (&["doctor"], Supported),
    (&["gateway"], Refused("Set ANTHROPIC_BASE_URL to use a gateway.")),
    (&["help"], Supported),
    (
        &["import"],
        Refused(
            "Settings of other programs are not imported. Use `whimbrel config set` and `whimbrel mcp add`.",
        ),
    ),
    (&["install"], NO_INSTALLER),
    (&["kill", "stop"], NO_BACKGROUND),
    (&["logs"], NO_BACKGROUND),
    (&["mcp add"], Supported),
    (
        &["mcp add-from-claude-desktop"],
        Refused("Entries of other programs are not imported. Copy each with `whimbrel mcp add-json`."),
    ),
    (&["mcp add-json"], Supported),
    (&["mcp get"], Supported),
    (&["mcp list"], Supported),
    (&["mcp login"], Supported),
    (&["mcp logout"], Supported),
    (&["mcp remove"], Supported),
    (
        &["mcp reset-project-choices"],
        Refused(
            "Approvals are settings. Use `whimbrel config remove enabledMcpjsonServers` and `whimbrel config remove \
                disabledMcpjsonServers`.",
        ),
    ),
    (&["mcp serve"], Supported),
    (&["plugin disable", "plugins disable"], Supported),
    (&["plugin enable", "plugins enable"], Supported),
    (&["plugin install", "plugins install"], Supported),
    (&["plugin list", "plugins list"], Supported),
    (&["plugin marketplace", "plugins marketplace"], Supported),
    (&["plugin uninstall", "plugins uninstall"], Supported),
    (&["plugin update", "plugins update"], Supported),
    (&["plugin validate", "plugins validate"], Supported),
    (&["project"], NO_PURGE),
    (&["purge"], NO_PURGE),
    (
        &["remote-control"],
        Refused(
            "A session is controlled by the program that starts it. Use an SDK, or --input-format stream-json.",
        ),
    ),
    (&["respawn"], NO_BACKGROUND),
    (&["rm"], NO_BACKGROUND),
    (&["setup-token"], NO_LOGIN),
    (&["ultrareview"], Refused("There is no hosted review. Ask for a review in a prompt.")),
    (&["update", "upgrade"], NO_INSTALLER),
];

/// Returns whether a word is the first word of a subcommand, of this program or the official one.
pub(crate) fn is_subcommand(word: &str) -> bool {
    let mut official = OFFICIAL_SUBCOMMANDS.iter().flat_map(|(names, _)| names.iter());
    official.any(|name| name.split(' ').next() == Some(word)) || is_own_subcommand(word)
}

/// Returns the error text for a subcommand that this program refuses.
pub(crate) fn refuse_subcommand(name: &str) -> Option<String> {
    let (_, support) = OFFICIAL_SUBCOMMANDS.iter().find(|(names, _)| names.contains(&name))?;
    match support {
        Refused(remedy) => Some(format!("`{name}` is not supported by whimbrel. {remedy}")),
        Supported | Support::Partly(_) | Support::NoEffect(_) => None,
    }
}
