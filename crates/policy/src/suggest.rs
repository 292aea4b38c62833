//! What a host may offer as "always allow".

use whimbrel_wire::permission::PermissionUpdate;

use crate::decide::Case;
use crate::decision::Question;
use crate::subject::Subject;

pub(crate) fn suggestions(_: &Question, _: &Case<'_>, _: &Subject<'_>) -> Vec<PermissionUpdate> {
    Vec::new()
}
