//! The micro benchmark as a picture: each case a row, each setting a mark on it, on a logarithmic axis of nanoseconds.

use std::path::Path;

use plotters::prelude::*;

use crate::results::{Kind, Results, Row};

const WIDTH: u32 = 1000;
const LINE_HEIGHT: u32 = 22;
const MARGIN: u32 = 90;
const COLOURS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
    RGBColor(255, 127, 14),
    RGBColor(23, 190, 207),
];

/// Draws the medians into an SVG file.
///
/// # Errors
/// That there is nothing to draw, or that the file cannot be written.
pub fn draw(results: &Results, path: &Path) -> Result<(), String> {
    let rows = results.rows.iter().filter(|row| row.kind == Kind::Micro).collect::<Vec<_>>();
    let (cases, settings) = (unique(&rows, |row| row.case.clone()), unique(&rows, setting));
    if cases.is_empty() {
        return Err("no micro benchmark was measured: nothing to draw".into());
    }
    let height = MARGIN + LINE_HEIGHT * (cases.len() + settings.len()) as u32;
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    render(&area, &rows, &cases, &settings).map_err(|error| format!("{}: {error}", path.display()))
}

fn render(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    rows: &[&Row],
    cases: &[String],
    settings: &[String],
) -> Result<(), Box<dyn std::error::Error>> {
    area.fill(&WHITE)?;
    let most = rows.iter().map(|row| row.median_ns).fold(1_000.0, f64::max);
    let lines = (cases.len() + settings.len()) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption("Nanoseconds an operation, medians", ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(160)
        .build_cartesian_2d((100.0..2.0 * most).log_scale(), 0.0..lines)?;
    let name = |place: &f64| {
        let number = (cases.len() as f64 - place).round() as usize;
        cases.get(number).filter(|_| *place <= cases.len() as f64).cloned().unwrap_or_default()
    };
    chart
        .configure_mesh()
        .y_labels(cases.len() + settings.len())
        .y_label_formatter(&name)
        .light_line_style(WHITE)
        .draw()?;
    for (number, wanted) in settings.iter().enumerate() {
        let style = COLOURS[number % COLOURS.len()].filled();
        let marks = rows.iter().filter(|row| setting(row) == *wanted).filter_map(|row| {
            let place = cases.iter().position(|case| *case == row.case)?;
            Some(Circle::new((row.median_ns, cases.len() as f64 - place as f64), 4, style))
        });
        chart.draw_series(marks)?.label(wanted.clone()).legend(move |(x, y)| Circle::new((x + 8, y), 4, style));
    }
    chart.configure_series_labels().border_style(BLACK).position(SeriesLabelPosition::UpperRight).draw()?;
    area.present()?;
    Ok(())
}

fn setting(row: &Row) -> String {
    format!("{} over {}, {}", row.protocol, row.transport, row.faults)
}

/// The different values, in the order of their first appearance.
fn unique(rows: &[&Row], of: impl Fn(&Row) -> String) -> Vec<String> {
    let mut all = Vec::new();
    for row in rows {
        let value = of(row);
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}
