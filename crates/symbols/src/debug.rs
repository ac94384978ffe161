//! DWARF: where variables are declared, and the lines of instructions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use addr2line::Context;
use gimli::{
    self, AttributeValue, DebuggingInformationEntry as Die, EndianArcSlice, Operation, Reader, RunTimeEndian,
    UnitOffset, UnitRef, UnitSectionOffset, constants as dw,
};

use object::{Object, ObjectSection};

use crate::place::{Instruction, Line};

type Bytes = EndianArcSlice<RunTimeEndian>;
type Unit<'a> = UnitRef<'a, Bytes>;

/// What a file's debugging information says.
pub struct Debug {
    context: Context<Bytes>,
    /// By the address at which they begin.
    variables: HashMap<u64, Declaration>,
}

/// A variable as the source has it.
#[derive(Clone, Debug)]
pub struct Declaration {
    pub name: String,
    pub line: Option<Line>,
}

impl Debug {
    /// None if there is none, or if it cannot be read: names are a courtesy.
    pub fn of(file: &object::File<'_>) -> Option<Self> {
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let section = |id: gimli::SectionId| {
            let found = file.section_by_name(id.name()).and_then(|section| section.data().ok());
            Ok::<_, gimli::Error>(EndianArcSlice::new(Arc::from(found.unwrap_or_default()), endian))
        };
        let dwarf = Arc::new(gimli::Dwarf::load(section).ok()?);
        let mut variables = HashMap::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            // A unit that is damaged, or of a kind unknown to us, leaves the others as they are.
            if let Ok(unit) = dwarf.unit(header) {
                let _ = read_variables(&dwarf, &unit.unit_ref(&dwarf), &mut variables);
            }
        }
        let context = Context::from_arc_dwarf(dwarf).ok()?;
        Some(Self { context, variables })
    }

    /// The variable that begins here.
    pub fn declaration(&self, address: u64) -> Option<&Declaration> {
        self.variables.get(&address)
    }

    /// The innermost function at an instruction, and the line.
    pub fn instruction(&self, address: u64) -> Instruction {
        let frames = self.context.find_frames(address).skip_all_loads();
        let frame = frames.ok().and_then(|mut frames| frames.next().ok().flatten());
        let Some(frame) = frame else { return Instruction::default() };
        let function = frame.function.and_then(|name| name.demangle().ok().map(Cow::into_owned));
        let folder = self.folder_at(address);
        let line = frame.location.and_then(|location| {
            Some(Line { file: below(location.file?, folder.as_deref()), line: location.line.unwrap_or(0) })
        });
        Instruction { function, line }
    }

    /// Where the compiler ran.
    fn folder_at(&self, address: u64) -> Option<String> {
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
        Some(unit.comp_dir.as_ref()?.to_string_lossy().ok()?.into_owned())
    }
}

/// A path as it was given to a compiler that ran in this folder.
fn below(path: &str, folder: Option<&str>) -> String {
    let rest = folder.and_then(|folder| path.strip_prefix(folder)).and_then(|rest| rest.strip_prefix('/'));
    let rest = rest.unwrap_or(path);
    rest.strip_prefix("./").unwrap_or(rest).to_owned()
}

fn read_variables(
    dwarf: &gimli::Dwarf<Bytes>,
    unit: &Unit<'_>,
    into: &mut HashMap<u64, Declaration>,
) -> gimli::Result<()> {
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if entry.tag() == dw::DW_TAG_variable
            && let Some(address) = address_of(unit, entry)?
        {
            let declaration = declaration_of(dwarf, unit, entry)?;
            into.extend(declaration.map(|declaration| (address, declaration)));
        }
    }
    Ok(())
}

/// The address of a variable whose place never changes; none for those in registers and on stacks.
fn address_of(unit: &Unit<'_>, entry: &Die<Bytes>) -> gimli::Result<Option<u64>> {
    let Some(AttributeValue::Exprloc(place)) = entry.attr_value(dw::DW_AT_location) else { return Ok(None) };
    let mut steps = place.operations(unit.encoding());
    let address = match steps.next()? {
        Some(Operation::Address { address }) => address,
        Some(Operation::AddressIndex { index }) => unit.address(index)?,
        _ => return Ok(None),
    };
    // One step more is a thread-local variable, or a calculation.
    Ok(steps.next()?.is_none().then_some(address))
}

/// Name and line stand in the entry itself, or in the one that it completes: a class's, an inlined function's.
fn declaration_of(
    dwarf: &gimli::Dwarf<Bytes>,
    unit: &Unit<'_>,
    entry: &Die<Bytes>,
) -> gimli::Result<Option<Declaration>> {
    let mut found = Found::default();
    found.take(unit, entry)?;
    for attribute in [dw::DW_AT_specification, dw::DW_AT_abstract_origin] {
        match entry.attr_value(attribute) {
            Some(AttributeValue::UnitRef(offset)) => found.take_at(unit, offset)?,
            Some(AttributeValue::DebugInfoRef(offset)) => {
                // Of another unit, as after optimisation of the whole program.
                if let Some((other, offset)) = unit_of(dwarf, UnitSectionOffset(offset.0))? {
                    found.take_at(&other.unit_ref(dwarf), offset)?;
                }
            }
            _ => {}
        }
    }
    let line = found.file.map(|file| Line { file, line: found.line });
    Ok(found.name.map(|name| Declaration { name, line }))
}

fn unit_of(
    dwarf: &gimli::Dwarf<Bytes>,
    offset: UnitSectionOffset,
) -> gimli::Result<Option<(gimli::Unit<Bytes>, UnitOffset)>> {
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        if let Some(inside) = offset.to_unit_offset(&header) {
            return Ok(Some((dwarf.unit(header)?, inside)));
        }
    }
    Ok(None)
}

/// What entries have said so far; the first to say something is right.
#[derive(Default)]
struct Found {
    name: Option<String>,
    file: Option<String>,
    line: u32,
}

impl Found {
    fn take_at(&mut self, unit: &Unit<'_>, offset: UnitOffset) -> gimli::Result<()> {
        let entry = unit.entry(offset)?;
        self.take(unit, &entry)
    }

    fn take(&mut self, unit: &Unit<'_>, entry: &Die<Bytes>) -> gimli::Result<()> {
        if self.name.is_none()
            && let Some(name) = entry.attr_value(dw::DW_AT_name)
        {
            self.name = Some(unit.attr_string(name)?.to_string_lossy()?.into_owned());
        }
        if self.file.is_none()
            && let Some(AttributeValue::FileIndex(index)) = entry.attr_value(dw::DW_AT_decl_file)
        {
            self.file = file_name(unit, index)?;
            self.line = entry.attr(dw::DW_AT_decl_line).and_then(gimli::Attribute::udata_value).unwrap_or(0) as u32;
        }
        Ok(())
    }
}

/// A file of the unit's line table, with its folder if it has one of its own.
fn file_name(unit: &Unit<'_>, index: u64) -> gimli::Result<Option<String>> {
    let Some(program) = &unit.line_program else { return Ok(None) };
    let header = program.header();
    let Some(file) = header.file(index) else { return Ok(None) };
    let text = |value| Ok::<_, gimli::Error>(unit.attr_string(value)?.to_string_lossy()?.into_owned());
    let name = text(file.path_name())?;
    let working = unit.comp_dir.as_ref().map(|folder| folder.to_string_lossy().map(Cow::into_owned)).transpose()?;
    let folder = file.directory(header).map(text).transpose()?.filter(|_| !name.starts_with('/'));
    let path = match folder {
        Some(folder) if working.as_ref() != Some(&folder) && !folder.is_empty() => format!("{folder}/{name}"),
        Some(_) | None => name,
    };
    Ok(Some(below(&path, working.as_deref())))
}
