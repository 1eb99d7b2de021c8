//! What the broker does to itself before it accepts the first request.

use super::{
    landlock_rules, limits,
    namespaces::{GUEST_USER, OpenedFolders, become_user},
    root,
    seccomp_filter::{self, SocketRule},
    setup::{DuringSetup as _, SetupResult},
};
use crate::{
    isolation::IsolationTier,
    protocol::{HelperFacts, HelperStart, SetupStep},
    sys::{capabilities, loopback},
};
use nix::{
    sys::prctl,
    unistd::{geteuid, sethostname},
};

pub fn enter(start: &HelperStart, folders: Option<OpenedFolders>) -> SetupResult<HelperFacts> {
    let step = SetupStep::Identity;
    let mut landlock_abi = 0;
    if let Some(folders) = folders {
        let user = if start.user_namespace { GUEST_USER } else { start.host_user.unwrap_or(GUEST_USER) };
        root::enter(folders, &start.policy.limits, user)?;
        sethostname("sandbox").during(step, "set the host name")?;
        loopback::switch_on().during(SetupStep::Loopback, "switch the loopback interface on")?;
        capabilities::drop_bounding_set().during(step, "drop the bounding set")?;
    }
    // Inside a user namespace we are already the user that root has chosen.
    let has_own_user = start.host_user.is_some() && start.tier != IsolationTier::None;
    if let Some(user) = start.host_user.filter(|_| has_own_user && !start.user_namespace) {
        become_user(user)?;
    }
    if start.tier != IsolationTier::None {
        capabilities::drop_all().during(step, "drop capabilities")?;
        // Nothing inside can read the memory of the broker.
        prctl::set_dumpable(false).during(step, "hide the broker's memory")?;
    }
    prctl::set_no_new_privs().during(step, "forbid new rights")?;
    limits::set(&start.policy.limits)?;
    match start.tier {
        IsolationTier::Native => {
            landlock_abi = landlock_rules::apply()?;
            seccomp_filter::apply(SocketRule::KnownFamilies)?;
        }
        IsolationTier::Landlock => {
            landlock_abi = landlock_rules::apply_alone(&start.policy)?;
            seccomp_filter::apply(SocketRule::NoSockets)?;
        }
        IsolationTier::Docker | IsolationTier::None => {}
    }
    Ok(HelperFacts {
        landlock_abi,
        has_cgroup: start.cgroup.is_some(),
        has_user_namespace: start.user_namespace,
        has_own_user,
        has_root: geteuid().is_root(),
    })
}
