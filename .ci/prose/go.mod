module github.com/jobweaver/jobweaver/ci/prose

go 1.26.8
