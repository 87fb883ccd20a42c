//! stub
use std::collections::BTreeMap;
pub(crate) fn render() -> BTreeMap<&'static str, String> {
    BTreeMap::new()
}
