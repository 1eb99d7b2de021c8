//! Services of this machine and of the network.

use super::{HostileCase, NATIVE, SANDBOX_STOPS_IT, Stopped};
use crate::scene::Scene;

#[test]
fn case_10_a_service_on_loopback() {
    let address = |scene: &Scene| vec![scene.on_loopback.local_addr().unwrap().to_string()];
    HostileCase::new("tcp", address).expect(SANDBOX_STOPS_IT);
}

#[test]
fn case_11_an_abstract_unix_socket() {
    HostileCase::new("abstract-socket", |scene| vec![scene.marker.clone()]).expect(SANDBOX_STOPS_IT);
}

#[test]
fn case_12_a_unix_socket_with_a_path() {
    let path = |scene: &Scene| vec![scene.outside("socket").display().to_string()];
    HostileCase::new("path-socket", path).expect(SANDBOX_STOPS_IT);
}

#[test]
fn case_13_families_that_a_network_namespace_does_not_confine() {
    HostileCase::new("socket-families", |_| Vec::new()).expect(SANDBOX_STOPS_IT);
}

#[test]
fn case_14_the_network_outside() {
    HostileCase::new("tcp", |_| vec!["192.0.2.1:80".to_owned()]).expect(&[(NATIVE, Stopped)]);
    HostileCase::new("tcp", |_| vec!["[2001:db8::1]:443".to_owned()]).expect(&[(NATIVE, Stopped)]);
}

/// The server's own API listens there if it is open to the network.
#[test]
fn the_address_of_the_machine() {
    let probe = Scene::new(NATIVE, crate::scene::ServerUser::Ordinary);
    if probe.machine_address().is_none() {
        eprintln!("this machine has no address but loopback: nothing to test");
        return;
    }
    let address = |scene: &Scene| vec![scene.machine_address().unwrap().to_string()];
    HostileCase::new("tcp", address).expect(SANDBOX_STOPS_IT);
}
