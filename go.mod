module github.com/triagemq/triagemq

go 1.26
