//! Memory for a heap.

use finespun_heap::{Header, Heap, Layout, Page, Span, Tables};
use finespun_types::UnitSize;

/// A heap's tables, as a process would find them in the node segment.
pub struct Memory {
    pub layout: Layout,
    pub header: Box<Header>,
    pub pages: Vec<Page>,
    pub spans: Vec<Span>,
}

impl Memory {
    pub fn new(limit_pages: u32, nodes: u32, page: UnitSize) -> Self {
        let layout = Layout::new(limit_pages, nodes, page).unwrap();
        Self {
            layout,
            header: Box::new(Header::EMPTY),
            pages: vec![Page::default(); layout.pages() as usize],
            spans: vec![Span::default(); layout.limit_pages() as usize],
        }
    }

    pub fn heap(&mut self) -> Heap<'_> {
        let tables = Tables { header: &mut self.header, pages: &mut self.pages, spans: &mut self.spans };
        Heap::new(self.layout, tables)
    }
}
