//! Gives running containers other resources: first the node says whether it has them, then the runtime is told.

use transom_runtime::{Resources, RuntimeError};

use super::{Bench, RETRY, gone, kill};
use crate::{
    compose::{container_limits, pod_limits},
    pods::{
        decide::Kill,
        resize::{self, Attempt, Change, Outcome},
        view::find,
    },
};

/// What is not done now is remembered with its reason, and tried again where that may help.
pub(super) async fn resize(bench: Bench<'_>, changes: &[Change]) -> Result<(), RuntimeError> {
    let Some(spec) = bench.pod.spec.as_ref() else {
        return Ok(());
    };
    let site = bench.site;
    let uid = bench.pod.metadata.uid.as_deref().unwrap_or_default();
    let before = bench.memory().allocated.clone();
    if let Err(outcome) = site.room.judge(uid, spec, site.allocatable) {
        note(bench, outcome);
        return Ok(());
    }
    {
        let mut memory = bench.memory();
        resize::allocate(&mut memory, spec);
        memory.resize = None;
        site.room.take(bench.pod, &memory);
    }
    match carry_out(bench, changes).await {
        Ok(()) => Ok(()),
        Err(RuntimeError::NotSupported(why)) => {
            let mut memory = bench.memory();
            memory.allocated = before;
            site.room.take(bench.pod, &memory);
            drop(memory);
            note(bench, Outcome::Infeasible(why));
            Ok(())
        }
        Err(error) => {
            note(bench, Outcome::Failed(error.to_string()));
            Ok(())
        }
    }
}

fn note(bench: Bench<'_>, outcome: Outcome) {
    let retry = match outcome {
        Outcome::Infeasible(_) => None,
        Outcome::Deferred(_) | Outcome::Failed(_) => Some(bench.retry(RETRY)),
    };
    bench.memory().resize = Some(Attempt {
        generation: bench.pod.metadata.generation,
        outcome,
        retry,
    });
}

async fn carry_out(bench: Bench<'_>, changes: &[Change]) -> Result<(), RuntimeError> {
    let Some((spec, sandbox)) = bench.pod.spec.as_ref().zip(bench.sandboxes.first()) else {
        return Ok(());
    };
    let runtime = &bench.site.options.runtime;
    let whole = pod_limits(spec);
    // The pod as a whole must have room for what its containers get, and for what they still have.
    let free = Resources {
        cpu_limit_millis: None,
        memory_limit_bytes: None,
        ..whole.clone()
    };
    runtime.update_pod(&sandbox.id, &free).await?;
    for change in changes {
        if change.restarts {
            restart(bench, change).await?;
        } else {
            update(bench, change).await?;
        }
    }
    runtime.update_pod(&sandbox.id, &whole).await
}

async fn update(bench: Bench<'_>, change: &Change) -> Result<(), RuntimeError> {
    let Some((_, container)) = find(bench.pod, &change.name) else {
        return Ok(());
    };
    let site = bench.site;
    let limits = container_limits(bench.pod, &container, site.os, site.memory_bytes);
    let changed = site.options.runtime.update_container(&change.id, &limits);
    gone(changed.await)?;
    let given = container.resources.unwrap_or_default();
    bench.memory().given.insert(change.id.clone(), given);
    Ok(())
}

/// What is started next gets what is allocated by then.
async fn restart(bench: Bench<'_>, change: &Change) -> Result<(), RuntimeError> {
    let spec = bench.pod.spec.as_ref();
    let grace = spec.and_then(|spec| spec.termination_grace_period_seconds);
    let kill = Kill {
        id: change.id.clone(),
        name: change.name.clone(),
        grace: std::time::Duration::from_secs(grace.unwrap_or(30).max(2).unsigned_abs()),
        message: format!("Container {} resize requires restart", change.name),
    };
    kill::kill_all(bench, &[kill]).await
}
