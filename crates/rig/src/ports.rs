//! Which ports are free?
//!
//! Those the system gives us; between our asking and the server's taking somebody else may come, so whoever starts
//! a server must be ready to ask again.

use std::net::{Ipv4Addr, TcpListener};

use crate::error::RigError;

/// Different ones: all are held until the last is known.
pub fn free<const N: usize>() -> Result<[u16; N], RigError> {
    let mut held = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(RigError::Ports)?;
        *port = listener.local_addr().map_err(RigError::Ports)?.port();
        held.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_differ() {
        let ports = free::<20>().unwrap();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 20);
    }
}
