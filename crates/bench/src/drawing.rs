//! The micro benchmark as a picture: each case a row, each setting a mark on it, on a logarithmic axis of nanoseconds. And how costs
//! grow, as lines.

use std::path::Path;

use plotters::prelude::*;

use crate::growth::{Point, Scale};
use crate::results::Results;
use crate::row::{Kind, Row};

const WIDTH: u32 = 1000;
const LINE_HEIGHT: u32 = 22;
const MARGIN: u32 = 90;
const FIELD_HEIGHT: u32 = 320;
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
    let lines = (cases.len() + settings.len()) as i32;
    let mut chart = ChartBuilder::on(area)
        .caption("Nanoseconds an operation, medians", ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(160)
        .build_cartesian_2d((10.0..2.0 * most).log_scale(), 0..lines)?;
    let height_of = |number: usize| cases.len() as i32 - number as i32;
    let name = |place: &i32| {
        let number = (0..cases.len()).find(|&number| height_of(number) == *place);
        number.map(|number| cases[number].clone()).unwrap_or_default()
    };
    chart
        .configure_mesh()
        .x_label_formatter(&tick)
        .y_labels(2 * lines as usize) // so that none is left out
        .y_label_formatter(&name)
        .light_line_style(WHITE)
        .draw()?;
    for (number, wanted) in settings.iter().enumerate() {
        let style = COLOURS[number % COLOURS.len()].filled();
        let marks = rows.iter().filter(|row| setting(row) == *wanted).filter_map(|row| {
            let place = cases.iter().position(|case| *case == row.case)?;
            Some(Circle::new((row.median_ns, height_of(place)), 4, style))
        });
        chart.draw_series(marks)?.label(wanted.clone()).legend(move |(x, y)| Circle::new((x + 8, y), 4, style));
    }
    chart.configure_series_labels().border_style(BLACK).position(SeriesLabelPosition::UpperRight).draw()?;
    area.present()?;
    Ok(())
}

/// Draws how costs grow: a field for each axis, a line for each operation, both scales logarithmic.
///
/// # Errors
/// That there is nothing to draw, or that the file cannot be written.
pub fn draw_scale(scale: &Scale, path: &Path) -> Result<(), String> {
    let points = scale.points.iter().collect::<Vec<_>>();
    let (axes, cases) = (unique(&points, |point| point.axis.clone()), unique(&points, |point| point.case.clone()));
    if axes.is_empty() {
        return Err("no growth was measured: nothing to draw".into());
    }
    // One more for the legend.
    let lines = (axes.len() + 1).div_ceil(2);
    let area = SVGBackend::new(path, (WIDTH, FIELD_HEIGHT * lines as u32)).into_drawing_area();
    let fields = area.split_evenly((lines, 2));
    area.fill(&WHITE)
        .map_err(Into::into)
        .and_then(|()| axes.iter().zip(&fields).try_for_each(|(axis, field)| field_of(field, axis, &cases, &points)))
        .and_then(|()| legend(&fields[axes.len()], &cases))
        .and_then(|()| area.present().map_err(Into::into))
        .map_err(|error: Box<dyn std::error::Error>| format!("{}: {error}", path.display()))
}

fn field_of(
    field: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    axis: &str,
    cases: &[String],
    points: &[&Point],
) -> Result<(), Box<dyn std::error::Error>> {
    let here = points.iter().filter(|point| point.axis == axis).collect::<Vec<_>>();
    let most = here.iter().map(|point| point.min_ns).fold(1_000.0, f64::max);
    let last = here.iter().map(|point| point.at as f64).fold(2.0, f64::max);
    let mut chart = ChartBuilder::on(field)
        .caption(format!("ns an operation, against {axis}"), ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(28)
        .y_label_area_size(70)
        .build_cartesian_2d((0.9..1.1 * last).log_scale(), (2.0..3.0 * most).log_scale())?;
    chart.configure_mesh().light_line_style(WHITE).x_label_formatter(&tick).y_label_formatter(&tick).draw()?;
    for (number, case) in cases.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let line = here.iter().filter(|point| point.case == *case).map(|point| (point.at as f64, point.min_ns));
        chart.draw_series(LineSeries::new(line, colour).point_size(3))?;
    }
    Ok(())
}

fn legend(
    field: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    cases: &[String],
) -> Result<(), Box<dyn std::error::Error>> {
    for (number, case) in cases.iter().enumerate() {
        let y = 60 + LINE_HEIGHT as i32 * number as i32;
        field.draw(&Circle::new((90, y), 4, COLOURS[number % COLOURS.len()].filled()))?;
        field.draw(&Text::new(case.clone(), (104, y - 6), ("sans-serif", 13)))?;
    }
    Ok(())
}

/// The label of a tick on a logarithmic axis: of 1, 2, 3, ... 10, 20, ... those with a first digit of 1, 2 or 5, for more have no room.
fn tick(value: &f64) -> String {
    let text = format!("{value:.0}");
    if text.starts_with(['1', '2', '5']) { text } else { String::new() }
}

fn setting(row: &Row) -> String {
    format!("{} over {}, {}", row.protocol, row.transport, row.faults)
}

/// The different values, in the order of their first appearance.
fn unique<T>(rows: &[&T], of: impl Fn(&T) -> String) -> Vec<String> {
    let mut all = Vec::new();
    for row in rows {
        let value = of(row);
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}
