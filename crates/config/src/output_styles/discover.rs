//! Finds output styles: Markdown files whose front matter names them and whose body is their text.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use whimbrel_os::files::{self, FileKind};
use whimbrel_wire::options::SettingSource;

use crate::front_matter;
use crate::locations::ConfigLocations;
use crate::output_styles::{CodingInstructions, DEFAULT_STYLE, OutputStyle, user_styles_dir};
use crate::plugins::Plugins;
use crate::settings::LayerScope;

/// Maximum number of styles.
const MAX_STYLES: usize = 200;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct StyleFrontMatter {
    name: Option<String>,
    description: Option<String>,
    keep_coding_instructions: bool,
}

/// Directory of styles, or a single file.
struct StyleLocation {
    /// Plugin that it belongs to.
    plugin: Option<String>,
    scope: LayerScope,
    path: PathBuf,
}

/// Styles in files, strongest last: of two with the same name the last wins. Also returns warnings.
pub(super) fn find_styles(locations: &ConfigLocations, plugins: &Plugins) -> (Vec<OutputStyle>, Vec<String>) {
    let (mut styles, mut warnings) = (Vec::new(), Vec::new());
    for location in style_locations(locations, plugins) {
        for path in style_files(&location.path) {
            match read_style(locations, &location, &path) {
                Ok(style) if styles.len() < MAX_STYLES => styles.push(style),
                Ok(_) => warnings.push(format!(
                    "There are more than {MAX_STYLES} output styles; {} is not used.",
                    path.display()
                )),
                Err(reason) => {
                    warnings.push(format!("The output style {} is not used: {reason}.", path.display()));
                }
            }
        }
    }
    (styles, warnings)
}

fn style_locations(locations: &ConfigLocations, plugins: &Plugins) -> Vec<StyleLocation> {
    let mut found = Vec::new();
    for plugin in plugins.all() {
        let location = |path: &PathBuf| StyleLocation {
            plugin: Some(plugin.name.clone()),
            scope: LayerScope::User,
            path: path.clone(),
        };
        found.extend(plugin.output_styles.iter().map(location));
    }
    if let Some(path) = user_styles_dir(locations).filter(|_| locations.includes(SettingSource::User)) {
        found.push(StyleLocation { plugin: None, scope: LayerScope::User, path });
    }
    let project = locations.project_dirs(".claude/output-styles").into_iter().rev();
    found.extend(project.map(|path| StyleLocation { plugin: None, scope: LayerScope::Project, path }));
    found
}

/// Style files in a directory, or the file itself.
fn style_files(path: &Path) -> Vec<PathBuf> {
    let is_style = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "md");
    let mut paths = match files::file_kind(path) {
        Ok(FileKind::Directory) => {
            files::entry_names(path, MAX_STYLES).into_iter().map(|name| path.join(name)).collect()
        }
        Ok(FileKind::File(_)) => vec![path.to_owned()],
        _ => Vec::new(),
    };
    paths.retain(is_style);
    paths.sort();
    paths
}

fn read_style(
    locations: &ConfigLocations,
    location: &StyleLocation,
    path: &Path,
) -> Result<OutputStyle, String> {
    let real = files::real_path(path).ok_or("it does not exist")?;
    if !locations.may_read(location.scope, locations.repo_root(), &real)
        && !real.starts_with(&locations.project_dir)
    {
        return Err(format!("it links to {}, which is not in the project", real.display()));
    }
    let text = front_matter::read_text(&real)?;
    let file = front_matter::parse::<StyleFrontMatter>(&text, &["name", "description"]);
    if let Some(error) = file.error {
        return Err(format!("line {}: {}", error.line, error.cause));
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = file.head.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let name = match (name.unwrap_or(stem), &location.plugin) {
        (name, _) if name == DEFAULT_STYLE => return Err("\"default\" is a built-in style".into()),
        (name, Some(plugin)) => format!("{plugin}:{name}"),
        (name, None) => name,
    };
    Ok(OutputStyle {
        name,
        description: file.head.description.unwrap_or_default(),
        coding_instructions: if file.head.keep_coding_instructions {
            CodingInstructions::Keep
        } else {
            CodingInstructions::Drop
        },
        text: file.body.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use whimbrel_wire::options::PluginConfig;

    use super::*;
    use crate::output_styles::OutputStyles;
    use crate::plugins::enabled::EnabledPlugins;

    #[test]
    fn styles_are_found_by_name_and_the_nearest_wins() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for (path, text) in [
            ("home/output-styles/pirate.md", "---\nname: Pirate\ndescription: Talks\n---\nmine\n"),
            (
                "code/.claude/output-styles/other.md",
                "---\nname: Pirate\nkeep-coding-instructions: true\n---\nits\n",
            ),
            ("code/.claude/output-styles/Learning.md", "Learn otherwise."),
            ("code/.claude/output-styles/default.md", "Never."),
            ("code/.claude/output-styles/worse.md", "---\nkeep-coding-instructions: often\n---\nx"),
            ("code/.claude/output-styles/notes.txt", "no style"),
            ("plug/output-styles/terse.md", "---\nname: Terse\n---\nBe terse."),
        ] {
            let path = top.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(top.join("secret.md"), "secret").unwrap();
        std::os::unix::fs::symlink(top.join("secret.md"), top.join("code/.claude/output-styles/steal.md"))
            .unwrap();
        let mut locations = ConfigLocations {
            user_dir: Some(top.join("home")),
            working_dir: top.join("code"),
            project_dir: top.join("code"),
            sources: [SettingSource::User, SettingSource::Project].into(),
            ..ConfigLocations::default()
        };
        let plugins = Plugins::load(&[PluginConfig::local("plug")], &EnabledPlugins::default(), &top);
        let (styles, warnings) = OutputStyles::discover(&locations, &plugins);
        assert_eq!(styles.names(), ["default", "Explanatory", "Learning", "plug:Terse", "Pirate"]);
        let style = styles.select(Some("pirate")).unwrap().unwrap();
        assert_eq!((style.text.as_str(), style.coding_instructions), ("its", CodingInstructions::Keep));
        assert_eq!(
            styles.select(Some("Learning")).unwrap().unwrap().coding_instructions,
            CodingInstructions::Drop
        );
        assert_eq!((styles.select(None), styles.select(Some("Default"))), (Ok(None), Ok(None)));
        assert!(styles.select(Some("nosuch")).unwrap_err().contains("Explanatory, Learning"));
        for part in ["default.md", "worse.md", "steal.md"] {
            assert!(warnings.iter().any(|warning| warning.contains(part)), "{part}: {warnings:?}");
        }
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        locations.sources = [].into();
        let (styles, _) = OutputStyles::discover(&locations, &Plugins::default());
        assert_eq!(styles.names(), ["default", "Explanatory", "Learning"]);
    }
}
