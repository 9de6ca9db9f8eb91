module github.com/triagemq/triagemq

go 1.26

require (
	github.com/Azure/go-amqp v1.7.0 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
)
