// SPDX-License-Identifier: Apache-2.0

// Package longwork kills the broker and the workers under tasks that take longer than a lock,
// again and again. Workers write a history of what they do; at the end a checker reads it: no
// message was lost, none was at two workers at the same time, and each run went on from the
// last state that was saved.
//
// LONGWORK_ROUNDS says how often something is killed; the default is for each run of the tests.
package longwork
