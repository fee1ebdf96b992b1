# The demo. Its other half, `make demo`, is in the Makefile at the top.
.PHONY: demo-down
demo-down: deps ## end what `make demo DEMO_FLAGS=--keep` left running
	@node test/demo/main.ts --down
