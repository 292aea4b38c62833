//! Finding output styles: Markdown files whose head names them and whose body is what they say.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use whimbrel_wire::options::SettingSource;

use super::{Coding, DEFAULT, Style, of_person};
use crate::files::{self, Kind};
use crate::front_matter;
use crate::ground::Ground;
use crate::plugins::Plugins;
use crate::settings::Scope;

/// How large a style may be.
const LARGEST: u64 = 256 * 1024;

/// How many styles there may be.
const MOST: usize = 200;

/// What the head of a style can say.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Head {
    name: Option<String>,
    description: Option<String>,
    keep_coding_instructions: bool,
}

/// A folder of styles, or one of them.
struct Place {
    /// The plugin that it belongs to.
    plugin: Option<String>,
    scope: Scope,
    path: PathBuf,
}

/// The styles in files, the strongest last: of two with one name the last counts. And what is wrong with them.
pub(super) fn find(ground: &Ground, plugins: &Plugins) -> (Vec<Style>, Vec<String>) {
    let (mut styles, mut warnings) = (Vec::new(), Vec::new());
    for place in places(ground, plugins) {
        for path in files_of(&place.path) {
            match read(ground, &place, &path) {
                Ok(style) if styles.len() < MOST => styles.push(style),
                Ok(_) => warnings.push(format!(
                    "There are more than {MOST} output styles; {} is not used.",
                    path.display()
                )),
                Err(why) => {
                    warnings.push(format!("The output style {} is not used: {why}.", path.display()));
                }
            }
        }
    }
    (styles, warnings)
}

fn places(ground: &Ground, plugins: &Plugins) -> Vec<Place> {
    let mut places = Vec::new();
    for plugin in plugins.all() {
        let place = |path: &PathBuf| Place {
            plugin: Some(plugin.name.clone()),
            scope: Scope::Person,
            path: path.clone(),
        };
        places.extend(plugin.output_styles.iter().map(place));
    }
    if let Some(path) = of_person(ground).filter(|_| ground.asks(SettingSource::User)) {
        places.push(Place { plugin: None, scope: Scope::Person, path });
    }
    let project = ground.project_folders(".claude/output-styles").into_iter().rev();
    places.extend(project.map(|path| Place { plugin: None, scope: Scope::Project, path }));
    places
}

/// The files in a folder, or the file itself.
fn files_of(path: &Path) -> Vec<PathBuf> {
    let is_style = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "md");
    let mut paths = match files::kind(path) {
        Ok(Kind::Folder) => files::names(path, MOST).into_iter().map(|name| path.join(name)).collect(),
        Ok(Kind::File(_)) => vec![path.to_owned()],
        _ => Vec::new(),
    };
    paths.retain(is_style);
    paths.sort();
    paths
}

fn read(ground: &Ground, place: &Place, path: &Path) -> Result<Style, String> {
    let real = files::real_path(path).ok_or("it does not exist")?;
    if !ground.reaches(place.scope, ground.top(), &real) && !real.starts_with(&ground.project) {
        return Err(format!("it leads to {}, which is not in the project", real.display()));
    }
    if !matches!(files::kind(&real), Ok(Kind::File(_))) {
        return Err("it is not a regular file".into());
    }
    let (bytes, _) = files::read(&real, LARGEST).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
    let parted = front_matter::part::<Head>(&text, &["name", "description"]);
    if let Some(flaw) = parted.flaw {
        return Err(format!("line {}: {}", flaw.line, flaw.cause));
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = parted.head.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let name = match (name.unwrap_or(stem), &place.plugin) {
        (name, _) if name == DEFAULT => return Err("\"default\" is a style of the engine".into()),
        (name, Some(plugin)) => format!("{plugin}:{name}"),
        (name, None) => name,
    };
    Ok(Style {
        name,
        description: parted.head.description.unwrap_or_default(),
        coding: if parted.head.keep_coding_instructions { Coding::Kept } else { Coding::Dropped },
        text: parted.body.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use whimbrel_wire::options::PluginConfig;

    use super::*;
    use crate::output_styles::Styles;

    #[test]
    fn styles_are_found_by_name_and_the_nearest_counts() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
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
        let mut ground = Ground {
            config: Some(top.join("home")),
            root: top.join("code"),
            project: top.join("code"),
            sources: [SettingSource::User, SettingSource::Project].into(),
            ..Ground::default()
        };
        let plugins = Plugins::load(&[PluginConfig::local("plug")], &top);
        let (styles, warnings) = Styles::find(&ground, &plugins);
        assert_eq!(styles.names(), ["default", "Explanatory", "Learning", "plug:Terse", "Pirate"]);
        let pirate = styles.choose(Some("pirate")).unwrap().unwrap();
        assert_eq!((pirate.text.as_str(), pirate.coding), ("its", Coding::Kept));
        assert_eq!(styles.choose(Some("Learning")).unwrap().unwrap().coding, Coding::Dropped);
        assert_eq!((styles.choose(None), styles.choose(Some("Default"))), (Ok(None), Ok(None)));
        assert!(styles.choose(Some("nosuch")).unwrap_err().contains("Explanatory, Learning"));
        for part in ["default.md", "worse.md", "steal.md"] {
            assert!(warnings.iter().any(|warning| warning.contains(part)), "{part}: {warnings:?}");
        }
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        ground.sources = [].into();
        let (styles, _) = Styles::find(&ground, &Plugins::default());
        assert_eq!(styles.names(), ["default", "Explanatory", "Learning"]);
    }
}
