//! Folders that are trusted, uploads, and values of the host itself.

use super::{Step, Store, StoreError};
use crate::clock;

/// An upload as stored; its content is a file.
#[derive(Debug, Clone)]
pub(crate) struct UploadRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) size: i64,
}

/// The step that notes to which session an upload belongs.
pub(crate) fn belongs_to(upload: &str, session: &str) -> Step {
    Step::new("UPDATE uploads SET session = $2 WHERE id = $1", vec![upload.into(), session.into()])
}

impl Store {
    pub(crate) async fn set_trust(&self, folder: &str, trusted: bool) -> Result<(), StoreError> {
        let trusted_at = trusted.then(clock::now_ms);
        let step = Step::new(
            "INSERT INTO folders (path, trusted_at) VALUES ($1, $2) ON CONFLICT (path) DO UPDATE SET trusted_at = $2",
            vec![folder.into(), trusted_at.into()],
        );
        self.write_one(step).await.map(drop)
    }

    pub(crate) async fn is_trusted(&self, folder: &str) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM folders WHERE path = $1 AND trusted_at IS NOT NULL";
        Ok(!self.read(sql, vec![folder.into()]).await?.is_empty())
    }

    pub(crate) async fn add_upload(&self, upload: &UploadRow) -> Result<(), StoreError> {
        let step = Step::new(
            "INSERT INTO uploads (id, name, type, size, made_at) VALUES ($1, $2, $3, $4, $5)",
            vec![
                (&upload.id).into(),
                (&upload.name).into(),
                (&upload.media_type).into(),
                upload.size.into(),
                clock::now_ms().into(),
            ],
        );
        self.write_one(step).await.map(drop)
    }

    pub(crate) async fn upload(&self, id: &str) -> Result<Option<UploadRow>, StoreError> {
        let rows =
            self.read("SELECT id, name, type, size FROM uploads WHERE id = $1", vec![id.into()]).await?;
        let row = rows.first();
        row.map(|row| {
            let (id, name, media_type) = (row.text(0)?, row.text(1)?, row.text(2)?);
            Ok(UploadRow { id, name, media_type, size: row.int(3)? })
        })
        .transpose()
    }

    /// The uploads that belong to a session.
    pub(crate) async fn uploads_of(&self, session: &str) -> Result<Vec<String>, StoreError> {
        let rows = self.read("SELECT id FROM uploads WHERE session = $1", vec![session.into()]).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// A value of the host, made by the first start.
    pub(crate) async fn meta(&self, key: &str, default: String) -> Result<String, StoreError> {
        let step = Step::new(
            "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = meta.value RETURNING value",
            vec![key.into(), default.into()],
        );
        let rows = self.write_one(step).await?;
        rows.first().ok_or(StoreError::Shape("a value is missing"))?.text(0)
    }

    pub(crate) async fn set_meta(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let step = Step::new(
            "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2",
            vec![key.into(), value.into()],
        );
        self.write_one(step).await.map(drop)
    }
}
