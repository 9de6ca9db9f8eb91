// SPDX-License-Identifier: Apache-2.0

// Homesecurity is the worked example of the partitioned event processor: a company watches
// 100,000 homes, whose sensors each report every minute to an event hub of 16 partitions.
// Instances share the partitions, keep a document for each home in blob storage, and take
// over from each other. Residents watch their home on a page, operators the instances on
// another.
//
//	go run ./examples/homesecurity             everything: broker, sensors, three instances, pages
//	go run ./examples/homesecurity instance    one more instance, for what runs
//	go run ./examples/homesecurity add-sensor water
//
// reading.go has what sensors report and generate.go the sensors, aggregate.go what is kept
// of a home and store.go where, instance.go the event processor, web.go the pages, demo.go
// the command that starts all of them.
package main
