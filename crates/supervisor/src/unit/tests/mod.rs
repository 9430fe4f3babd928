//! Rules of the small languages inside of unit files, and properties that hold for any input.

mod calendar;
mod commands;
mod conditions;
mod honesty;
mod names;
mod properties;
mod values;
