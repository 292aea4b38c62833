//! The response to `get_settings`. Pure.

use serde_json::{Map, Value, json};
use whimbrel_wire::control::SettingsReport;

use crate::settings::layer::SettingsLayer;
use crate::settings::merge::EffectiveSettings;

/// Effective settings and each layer, weakest first. `applied` is what the session derived from them.
pub fn build_report(
    effective: &EffectiveSettings,
    layers: &[SettingsLayer],
    applied: Map<String, Value>,
) -> SettingsReport {
    SettingsReport {
        effective: effective.values.clone(),
        sources: layers.iter().map(render_layer).collect(),
        applied,
    }
}

fn render_layer(layer: &SettingsLayer) -> Value {
    let mut source = json!({"source": layer.origin.source.name(), "settings": layer.raw});
    if let Some(file) = &layer.origin.file {
        source["path"] = file.display().to_string().into();
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::layer::check_layer;
    use crate::settings::merge::merge;
    use crate::settings::read::SettingsDocument;
    use crate::settings::sources::{LayerOrigin, LayerScope, LayerSource};
    use crate::settings::trust::Trust;

    #[test]
    fn report_contains_effective_settings_and_layers() {
        let layer = |source, scope, file: Option<&str>, value: Value| {
            let origin = LayerOrigin { source, scope, file: file.map(Into::into), base: "/".into() };
            check_layer(
                origin,
                SettingsDocument::from_values(value.as_object().unwrap().clone()),
                Trust::Untrusted,
            )
            .layer
        };
        let project = json!({"model": "p", "permissions": {"allow": ["A"], "deny": ["D"]}});
        let layers = [
            layer(LayerSource::Project, LayerScope::Project, Some("/p/s.json"), project.clone()),
            layer(LayerSource::Flag, LayerScope::User, None, json!({"model": "f"})),
        ];
        let applied = json!({"model": "full-name"}).as_object().unwrap().clone();
        let report = build_report(&merge(&layers), &layers, applied);
        let expected = json!({
            "effective": {"model": "f", "permissions": {"deny": ["D"]}},
            "sources": [
                {"source": "projectSettings", "settings": project, "path": "/p/s.json"},
                {"source": "flagSettings", "settings": {"model": "f"}},
            ],
            "applied": {"model": "full-name"},
        });
        assert_eq!(serde_json::to_value(report).unwrap(), expected);
    }
}
