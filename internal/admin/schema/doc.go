// SPDX-License-Identifier: Apache-2.0

// Package schema describes Go types as JSON Schemas, for the OpenAPI document of the
// JSON API. It reads the types by reflection, as encoding/json does.
//
// A type that it cannot describe is a mistake in the table of routes: it panics, and
// the broker does not start.
package schema
