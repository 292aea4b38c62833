//! Marketplaces and plugins as text and as JSON. Pure.

use serde_json::{Map, Value, json};
use whimbrel_config::plugins::marketplace::MarketplaceEntry;
use whimbrel_config::plugins::plugin_id::PluginId;
use whimbrel_plugin_installer::listing::{ListedMarketplace, ListedPlugin, PluginListing};

use crate::terminal_ui::{LineBreaks, sanitize};

type Offers = [(PluginId, MarketplaceEntry)];

pub(super) fn render_marketplaces(marketplaces: &[ListedMarketplace]) -> String {
    if marketplaces.is_empty() {
        return "There are no marketplaces. Add one: whimbrel plugin marketplace add SOURCE\n".into();
    }
    let rows: Vec<[String; 2]> = marketplaces
        .iter()
        .map(|marketplace| {
            let state = match &marketplace.install_location {
                Some(_) => "",
                None => "  (named in settings, not added yet)",
            };
            [marketplace.name.clone(), format!("{}{state}", marketplace.description)]
        })
        .collect();
    render_rows(&rows)
}

/// As the official engine: one object per marketplace with the fields of its source.
pub(super) fn render_marketplaces_json(marketplaces: &[ListedMarketplace]) -> Result<String, String> {
    let to_object = |marketplace: &ListedMarketplace| {
        let mut object = Map::from_iter([("name".to_owned(), json!(marketplace.name))]);
        for key in ["source", "repo", "url", "path", "ref"] {
            if let Some(value) = marketplace.source.get(key) {
                object.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(location) = &marketplace.install_location {
            object.insert("installLocation".to_owned(), json!(location));
        }
        Value::Object(object)
    };
    to_json(&Value::Array(marketplaces.iter().map(to_object).collect()))
}

pub(super) fn render_plugins(listing: &PluginListing, offers: Option<&Offers>) -> String {
    let mut rows: Vec<[String; 2]> =
        listing.installed.iter().map(|plugin| [plugin.id.clone(), describe_plugin(plugin)]).collect();
    rows.extend(listing.missing.iter().map(|id| {
        [id.clone(), format!("enabled in settings, but not installed: whimbrel plugin install {id}")]
    }));
    let mut page = match rows.is_empty() {
        true => "There are no plugins. Install one: whimbrel plugin install NAME@MARKETPLACE\n".to_owned(),
        false => render_rows(&rows),
    };
    if let Some(offers) = offers {
        page += "\nAvailable:\n";
        let rows: Vec<[String; 2]> = offers
            .iter()
            .map(|(id, entry)| [id.to_string(), entry.description.clone().unwrap_or_default()])
            .collect();
        page += &render_rows(&rows);
    }
    page
}

fn describe_plugin(plugin: &ListedPlugin) -> String {
    let state = match (plugin.is_enabled, plugin.errors.as_slice()) {
        (false, _) => "disabled".to_owned(),
        (true, []) => "enabled".to_owned(),
        (true, errors) => format!("enabled, but: {}", errors.join(" ")),
    };
    format!("{}  {}  {state}", plugin.record.version, plugin.record.scope.as_str())
}

/// As the official engine: a list, or an object with both lists.
pub(super) fn render_plugins_json(
    listing: &PluginListing,
    offers: Option<&Offers>,
) -> Result<String, String> {
    let installed: Vec<Value> = listing.installed.iter().map(plugin_to_json).collect();
    let Some(offers) = offers else { return to_json(&Value::Array(installed)) };
    let available: Vec<Value> = offers.iter().map(|(id, entry)| offer_to_json(id, entry)).collect();
    to_json(&json!({"installed": installed, "available": available}))
}

fn plugin_to_json(plugin: &ListedPlugin) -> Value {
    let record = &plugin.record;
    let mut object = json!({
        "id": plugin.id, "version": record.version, "scope": record.scope.as_str(), "enabled": plugin.is_enabled,
        "installPath": record.install_path,
    });
    let optional = [
        ("installedAt", record.installed_at.as_ref().map(|time| json!(time))),
        ("lastUpdated", record.last_updated.as_ref().map(|time| json!(time))),
        ("projectPath", record.project_path.as_ref().map(|path| json!(path))),
        ("errors", (!plugin.errors.is_empty()).then(|| json!(plugin.errors))),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            object[key] = value;
        }
    }
    object
}

fn offer_to_json(id: &PluginId, entry: &MarketplaceEntry) -> Value {
    let mut object = json!({
        "pluginId": id.to_string(), "name": id.name(), "marketplaceName": id.marketplace(),
        "source": entry.written_source(),
    });
    for (key, value) in [("description", &entry.description), ("version", &entry.version)] {
        if let Some(value) = value {
            object[key] = json!(value);
        }
    }
    object
}

fn render_rows(rows: &[[String; 2]]) -> String {
    let width = rows.iter().map(|[name, _]| name.chars().count()).max().unwrap_or(0);
    let line = |[name, text]: &[String; 2]| {
        sanitize(format!("{name:<width$}  {text}").trim_end(), LineBreaks::Replace) + "\n"
    };
    rows.iter().map(line).collect()
}

pub(super) fn to_json(value: &Value) -> Result<String, String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|error| error.to_string())
}
