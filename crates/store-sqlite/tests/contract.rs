//! The database does what every store must do.

use whimbrel_store_sqlite::SqliteStore;
use whimbrel_testkit::store_contract;

#[tokio::test]
async fn the_database_does_what_every_store_must_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = 0;
    store_contract::check(|| {
        made += 1;
        SqliteStore::open(folder.path().join(format!("{made}.db"))).unwrap()
    })
    .await
    .unwrap();
}
