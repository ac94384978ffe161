//! What the runtime needs of a protocol beside its tables.

use finespun_protocol::Family;
use finespun_protocol::cashmere::Cashmere;
use finespun_protocol::cashmere::broadcast::Broadcasting;
use finespun_protocol::cashmere::migration::Migrating;
use finespun_protocol::page::{Carried, Protocol};
use finespun_protocol::strings::invalidate::StringsSc;
use finespun_protocol::strings::update::StringsRc;

use crate::sys::records::Plain;

/// A protocol that jobs can run.
pub trait Live: Protocol<Msg: Carried, Unit: Plain, Directory: Plain, Manager: Plain> {
    /// Its name among the families.
    const FAMILY: Family;
}

impl Live for Cashmere {
    const FAMILY: Family = Family::Cashmere;
}

impl Live for Broadcasting {
    const FAMILY: Family = Family::Broadcasting;
}

impl Live for Migrating {
    const FAMILY: Family = Family::Migrating;
}

impl Live for StringsRc {
    const FAMILY: Family = Family::StringsRc;
}

impl Live for StringsSc {
    const FAMILY: Family = Family::StringsSc;
}
