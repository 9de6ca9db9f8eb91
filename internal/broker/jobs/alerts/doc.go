// SPDX-License-Identifier: Apache-2.0

// Package alerts sends alerts: the state of an objective has changed, or messages could not
// be read.
//
// Alerts (alerts.go) is a queue and a job. Raise adds changes from any goroutine; the job
// logs each alert, publishes it to the topic of alerts and calls the hooks. damage.go
// collects the messages whose bodies are unreadable and raises one alert for each entity.
//
// # Invariants
//
//  1. Raise and Damaged never block. Alerts beyond a bound are dropped, and the log says
//     how many.
//  2. Hooks are called one at a time, in the order of the alerts.
//
// # Concurrency
//
// All methods may be called from any goroutine.
//
// # Not here
//
// When an objective is missed: package objective. Webhooks: package server/webhook.
package alerts
