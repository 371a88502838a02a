//! One test binary for the hub: a server on loopback, what it has, and all that can go wrong on the way.

#[cfg(test)]
mod broken;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod here;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod server;
#[cfg(test)]
mod whole;
