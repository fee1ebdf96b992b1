##@ Image, chart, release
.PHONY: image
image: deps ## the operator's image as an archive, by buildah, without a registry: [NAME=...:TAG] [STAGES=all]
	@node test/image/main.ts $(if $(NAME),--name $(NAME)) $(if $(STAGES),--stages $(STAGES))

.PHONY: manifests
manifests: deps ## write deploy/install from the chart
	@node test/chart/render.ts

.PHONY: release
release: deps ## image, chart, manifest, SBOM, licences, checksums into dist/release: NODE_DIGEST= RUNTIME_DIGEST= or BASES=stand-ins
	@node test/image/release.ts

.PHONY: audit
audit: deps ## known vulnerabilities of the packages, and their signatures, asked of npm's registry (mirrors may not answer)
	@PATH="$(MACHINE_PATH)" npm audit --omit=dev --audit-level=low
	@PATH="$(MACHINE_PATH)" npm audit --audit-level=high
	@PATH="$(MACHINE_PATH)" npm audit signatures
