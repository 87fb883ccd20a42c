//! Which nodes could a pool launch?

use nodemolt_fit::{Quantity, label, pool::Pool, taint::Taint};

use super::reader::Reader;
use crate::{file::path, into_core::PoolOfClass, nodepool, nodepool::NodePool, problem::Finding};

/// A pool without its machines: which there are, and for how much, is not written in it.
pub fn pool(wire: &NodePool) -> Result<Pool, Vec<Finding>> {
    let mut reader = Reader::default();
    let requirements = match PoolOfClass::try_from(wire) {
        Ok(read) => read.pool.requirements,
        Err(found) => {
            reader.found.extend(found);
            Vec::new()
        }
    };
    let template = &wire.spec.template;
    let mut labels = template.metadata.as_ref().map(|it| it.labels.clone()).unwrap_or_default();
    labels.insert(label::NODECLASS.to_owned(), template.spec.node_class_ref.name.clone());
    let mut limits = nodemolt_fit::capacity::Amounts::new();
    for (name, amount) in wire.spec.limits.iter().flatten() {
        let field = path::join("spec.limits", name);
        match amount.0.parse::<Quantity>() {
            Ok(amount) => drop(limits.insert(name.clone(), amount)),
            Err(error) => reader.refuse(field, error.to_string()),
        }
    }
    let spec = &template.spec;
    let pool = Pool {
        name: wire.metadata.name.clone(),
        weight: wire.spec.weight.and_then(|it| u32::try_from(it).ok()).unwrap_or(0),
        labels,
        taints: taints("spec.template.spec.taints", spec.taints.as_ref(), &mut reader),
        startup_taints: taints(
            "spec.template.spec.startupTaints",
            spec.startup_taints.as_ref(),
            &mut reader,
        ),
        requirements,
        limits,
        ..Pool::default()
    };
    if reader.found.is_empty() { Ok(pool) } else { Err(reader.found) }
}

pub(crate) fn taints(
    field: &str,
    wire: Option<&Vec<nodepool::Taint>>,
    reader: &mut Reader,
) -> Vec<Taint> {
    let mut taints = Vec::new();
    for (at, it) in wire.into_iter().flatten().enumerate() {
        let field = format!("{field}[{at}]");
        taints.extend(reader.taint(&field, &it.key, it.value.as_deref(), &it.effect));
    }
    taints
}
