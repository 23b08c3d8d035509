# What a platform team would write down for a tenant, applied by OpenTofu's Kubernetes provider.

variable "greeting" {
  default = "ahoy"
}

resource "kubernetes_namespace" "harbour" {
  metadata {
    name   = "tofu-harbour"
    labels = { team = "pilots" }
  }
}

resource "kubernetes_config_map" "settings" {
  metadata {
    name      = "settings"
    namespace = kubernetes_namespace.harbour.metadata[0].name
  }
  data = { greeting = var.greeting }
}

resource "kubernetes_secret" "key" {
  metadata {
    name      = "key"
    namespace = kubernetes_namespace.harbour.metadata[0].name
  }
  data = { password = "between the lines" }
}

resource "kubernetes_role" "reader" {
  metadata {
    name      = "reader"
    namespace = kubernetes_namespace.harbour.metadata[0].name
  }
  rule {
    api_groups = [""]
    resources  = ["configmaps"]
    verbs      = ["get", "list", "watch"]
  }
}

resource "kubernetes_role_binding" "pilot_reads" {
  metadata {
    name      = "pilot-reads"
    namespace = kubernetes_namespace.harbour.metadata[0].name
  }
  role_ref {
    api_group = "rbac.authorization.k8s.io"
    kind      = "Role"
    name      = kubernetes_role.reader.metadata[0].name
  }
  subject {
    kind      = "ServiceAccount"
    name      = "default"
    namespace = kubernetes_namespace.harbour.metadata[0].name
  }
}

resource "kubernetes_resource_quota" "small" {
  metadata {
    name      = "small"
    namespace = kubernetes_namespace.harbour.metadata[0].name
  }
  spec {
    hard = { "count/configmaps" = "5" }
  }
}

resource "kubernetes_service" "tower" {
  metadata {
    name      = "tower"
    namespace = kubernetes_namespace.harbour.metadata[0].name
  }
  spec {
    selector = { app = "tower" }
    port {
      port        = 80
      target_port = 8080
    }
  }
}

resource "kubernetes_deployment" "tower" {
  wait_for_rollout = false
  metadata {
    name      = "tower"
    namespace = kubernetes_namespace.harbour.metadata[0].name
  }
  spec {
    replicas = 1
    selector {
      match_labels = { app = "tower" }
    }
    template {
      metadata {
        labels = { app = "tower" }
      }
      spec {
        container {
          name  = "tower"
          image = "tower:1"
        }
      }
    }
  }
}
